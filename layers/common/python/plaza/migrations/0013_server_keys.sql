-- Keys of servers, which act for users. Only an addition.

-- auth: a key of a server. Of each name two are valid at a time at most.
CREATE TABLE IF NOT EXISTS server_key (
  key_id         CHAR(16)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'part of the key; no secret',
  secret_sha256  BINARY(32)   NOT NULL,
  name           VARCHAR(64)  NOT NULL,
  scopes         VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'read,act,moderate',
  requests_per_s INT          NOT NULL,
  created_at     DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  used_at        DATETIME(6)  NULL COMMENT 'last use, ten minutes exact',
  ended_at       DATETIME(6)  NULL,
  PRIMARY KEY (key_id),
  KEY by_name (name, ended_at)
);
