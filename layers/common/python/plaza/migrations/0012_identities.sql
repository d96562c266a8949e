-- Identities: users who sign in with ID tokens of OpenID Connect issuers. Only an addition.

-- users: the user of a subject at an issuer. A table of its own, as user_phone.
CREATE TABLE IF NOT EXISTS user_identity (
  issuer     VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'URL',
  subject    VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'claim sub',
  user_id    BIGINT      NOT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (issuer, subject),
  UNIQUE KEY by_user (user_id)
);
