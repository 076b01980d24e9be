-- The write lock at once: a deferred transaction that upgrades later fails without waiting.
BEGIN IMMEDIATE
