-- Users, how they sign in, and whom they block.

-- users: a user and the public profile.
CREATE TABLE IF NOT EXISTS user (
  id            BIGINT       NOT NULL,
  nickname      VARCHAR(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  avatar        VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'a URL',
  role          VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'user',
  time_zone     VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'UTC' COMMENT 'IANA name',
  latest_day    DATE         NULL COMMENT 'local day at the last change of the time zone: the local day is never earlier',
  excused_from  DATE         NULL COMMENT 'first day that the last move to the east cut short or skipped',
  excused_until DATE         NULL COMMENT 'last one of them: the day before the first one in the new time zone',
  version       BIGINT       NOT NULL DEFAULT 1 COMMENT 'number of changes of the profile',
  created_at    DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id)
);

-- users: the phone of a user. A table of its own, so that no query of profiles reads it.
CREATE TABLE IF NOT EXISTS user_phone (
  phone      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'E.164',
  user_id    BIGINT      NOT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (phone),
  UNIQUE KEY by_user (user_id)
);

-- users: the user of a subject at an issuer of OpenID Connect. A table of its own, as user_phone.
CREATE TABLE IF NOT EXISTS user_identity (
  issuer     VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'URL',
  subject    VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'claim sub',
  user_id    BIGINT       NOT NULL,
  created_at DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (issuer, subject),
  UNIQUE KEY by_user (user_id)
);

-- users: a user who closed the account: the rows of user, user_phone and user_identity, which are deleted
-- meanwhile. It ends with the erasure, or when the texts of a reopened account are shown again.
CREATE TABLE IF NOT EXISTS closed_user (
  user_id       BIGINT       NOT NULL,
  nickname      VARCHAR(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  avatar        VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  role          VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  time_zone     VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  latest_day    DATE         NULL,
  excused_from  DATE         NULL,
  excused_until DATE         NULL,
  version       BIGINT       NOT NULL,
  created_at    DATETIME(6)  NOT NULL,
  phone         VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NULL,
  issuer        VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NULL,
  subject       VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NULL,
  closed_at     DATETIME(6)  NOT NULL COMMENT 'its texts are hidden since then, by their author',
  reopened_at   DATETIME(6)  NULL COMMENT 'its texts are shown again',
  settled_at    DATETIME(6)  NULL COMMENT 'when nothing was left to hide',
  PRIMARY KEY (user_id),
  KEY by_phone (phone),
  KEY by_identity (issuer, subject),
  KEY by_state (settled_at, user_id)
);

-- users: the erasure of a user, requested by the user. The row stays, as the record that it was done.
CREATE TABLE IF NOT EXISTS erasure (
  user_id           BIGINT      NOT NULL,
  account_closed_at DATETIME(6) NULL COMMENT 'when the user asked; NULL: at requested_at',
  requested_at      DATETIME(6) NOT NULL COMMENT 'from then on passes erase: of a closed account, seven days later',
  next_pass_at      DATETIME(6) NOT NULL,
  erased_at         DATETIME(6) NULL COMMENT 'when a pass found nothing more',
  closed_at         DATETIME(6) NULL COMMENT 'when no message from before can be on its way any more: the last pass',
  PRIMARY KEY (user_id),
  KEY by_next_pass (closed_at, next_pass_at),
  KEY by_pass (next_pass_at)
);

-- auth: an open session.
CREATE TABLE IF NOT EXISTS session (
  token_sha256 BINARY(32)   NOT NULL COMMENT 'the token itself is not stored',
  user_id      BIGINT       NOT NULL,
  method       VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'code, id_token, passkey, operate',
  client       VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'User-Agent of the sign-in',
  signed_in_at DATETIME(6)  NOT NULL COMMENT 'created_at is earlier for a session that ends sooner than others',
  created_at   DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  expires_at   DATETIME(6)  NOT NULL,
  PRIMARY KEY (token_sha256),
  KEY by_user (user_id),
  KEY by_expiry (expires_at)
);

-- auth: a passkey, with which a user signs in to the console.
CREATE TABLE IF NOT EXISTS passkey (
  credential_sha256 BINARY(32)      NOT NULL COMMENT 'SHA-256 of credential_id; its first half is the id in the API',
  user_id           BIGINT          NOT NULL,
  credential_id     VARBINARY(1023) NOT NULL,
  public_key        VARBINARY(2048) NOT NULL COMMENT 'COSE',
  sign_count        BIGINT          NOT NULL COMMENT 'of the last sign-in; 0 if the authenticator has no counter',
  may_be_synced     TINYINT(1)      NOT NULL COMMENT '1: a device may copy it to others of the user, whose counters differ',
  name              VARCHAR(60)     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
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

-- auth: a key of a server, which acts for users. Of each name two are valid at a time at most.
CREATE TABLE IF NOT EXISTS server_key (
  key_id         CHAR(16)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'part of the key; no secret',
  secret_sha256  BINARY(32)  NOT NULL,
  name           VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'lower-case letters, digits and hyphens',
  scopes         VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'read,act,moderate',
  requests_per_s INT         NOT NULL,
  created_at     DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  used_at        DATETIME(6) NULL COMMENT 'last use, ten minutes exact',
  ended_at       DATETIME(6) NULL,
  PRIMARY KEY (key_id),
  KEY by_name (name, ended_at)
);

-- blocks: a user who is blocked by another.
CREATE TABLE IF NOT EXISTS user_block (
  blocker_id BIGINT      NOT NULL,
  blocked_id BIGINT      NOT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (blocker_id, blocked_id),
  KEY by_time (blocker_id, created_at, blocked_id)
);
