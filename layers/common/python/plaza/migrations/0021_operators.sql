-- Operators: how and when a session was opened, passkeys, and the codes that enroll them. Only additions: a session of the
-- version before has NULL in the new columns, and keeps its role and its end.

ALTER TABLE session
  ADD COLUMN method VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'code, id_token, passkey, operate';

ALTER TABLE session
  ADD COLUMN signed_in_at DATETIME(6) NULL COMMENT 'created_at is earlier for a session that ends sooner than others';

ALTER TABLE session
  ADD COLUMN client VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'User-Agent of the sign-in';

-- auth: a passkey, with which a user signs in to the console.
CREATE TABLE IF NOT EXISTS passkey (
  credential_sha256 BINARY(32)      NOT NULL COMMENT 'SHA-256 of credential_id; its first half is the id in the API',
  user_id           BIGINT          NOT NULL,
  credential_id     VARBINARY(1023) NOT NULL,
  public_key        VARBINARY(2048) NOT NULL COMMENT 'COSE',
  sign_count        BIGINT          NOT NULL COMMENT 'of the last sign-in; 0 if the authenticator has no counter',
  name              VARCHAR(60)     NOT NULL,
  created_at        DATETIME(6)     NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  used_at           DATETIME(6)     NULL,
  PRIMARY KEY (credential_sha256),
  KEY by_user (user_id)
);

-- auth: the code with which a user enrolls one passkey. A user has one at most; a newer one replaces it.
CREATE TABLE IF NOT EXISTS passkey_code (
  user_id     BIGINT      NOT NULL,
  code_sha256 BINARY(32)  NOT NULL COMMENT 'the code itself is not stored',
  expires_at  DATETIME(6) NOT NULL,
  PRIMARY KEY (user_id),
  UNIQUE KEY by_code (code_sha256),
  KEY by_expiry (expires_at)
);
