CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s, happy');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN price AS numeric(8, 3);
CREATE TABLE numbers (
  id serial PRIMARY KEY, i2 smallint NOT NULL, i4 int, i8 bigint, f4 real, f8 double precision,
  n numeric, n_5_2 numeric(5,2) NOT NULL, n_7_0 numeric(7,0), m money, o oid,
  flag boolean NOT NULL DEFAULT true, with_default int DEFAULT 7, text_default text DEFAULT 'x',
  needed_default int NOT NULL DEFAULT 42, p positive, pr price
);
CREATE TABLE texts (
  code varchar(10), part char(3), body text, mood mood NOT NULL DEFAULT 'ok', u uuid, j json,
  jb jsonb, x xml, ip inet, net cidr, mac macaddr, mac8 macaddr8, one_char "char", ts tsvector,
  PRIMARY KEY (code, part)
);
CREATE TABLE times (
  id int PRIMARY KEY, d date, t time, t0 time(0), t3 time(3), tz timetz, ts timestamp,
  ts0 timestamp(0), ts3 timestamp(3), tstz timestamptz, tstz3 timestamptz(3), i interval,
  needed timestamp NOT NULL DEFAULT '2020-01-02 03:04:05.678901'
);
CREATE TABLE bits (
  id bigserial PRIMARY KEY, b1 bit(1), b3 bit(3), b17 bit(17), vb varbit, vb5 varbit(5), raw bytea, place point
);
CREATE TABLE lists (
  id int PRIMARY KEY, ints int[], texts text[], nums numeric(6,2)[], dates date[], flags boolean[],
  moods mood[], stamps timestamptz[], u uuid[], vc varchar(5)[], big bigint[], f8 double precision[],
  r int4range, nr numrange, tr tsrange, tzr tstzrange, dr daterange, ir8 int8range
);
CREATE TABLE keyless (a int, b text);
CREATE TABLE full_identity (id int PRIMARY KEY, a text, big text);
ALTER TABLE full_identity REPLICA IDENTITY FULL;
CREATE TABLE by_index (a int NOT NULL, b text NOT NULL, c text);
CREATE UNIQUE INDEX by_index_b ON by_index (b);
ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_b;
CREATE TABLE toasted (id int PRIMARY KEY, n int, big text, raw bytea, list text[]);
ALTER TABLE toasted ALTER COLUMN big SET STORAGE EXTERNAL;
ALTER TABLE toasted ALTER COLUMN raw SET STORAGE EXTERNAL;
ALTER TABLE toasted ALTER COLUMN list SET STORAGE EXTERNAL;
CREATE TABLE keyless_full (a int, b text);
ALTER TABLE keyless_full REPLICA IDENTITY FULL;
CREATE SCHEMA "Other Schema";
CREATE TABLE "Other Schema"."Mixed Case" ("The Id" int PRIMARY KEY, "a-b" text, "ü" text);
CREATE TABLE changing (id int PRIMARY KEY, a text);
