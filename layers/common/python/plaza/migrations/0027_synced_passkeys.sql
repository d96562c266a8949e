-- Passkeys that a device may copy to others of its user, whose counters differ. Only an addition.

ALTER TABLE passkey
  ADD COLUMN may_be_synced TINYINT(1) NULL COMMENT 'as the device said when it made the passkey; NULL: stored by a version before';
