UPDATE numbers SET i4 = 5, f4 = '-Infinity', n = 0.11 WHERE id = 1;

UPDATE numbers SET id = 10 WHERE id = 1;

DELETE FROM numbers WHERE id = 2;

INSERT INTO texts (code, part, body, mood) VALUES ('new', 'x', repeat('ab', 5000), 'ok');

UPDATE texts SET body = 'b' WHERE code = 'a';

INSERT INTO times SELECT id + 100, d, t, t0, t3, tz, ts, ts0, ts3, tstz, tstz3, i FROM times;

INSERT INTO bits SELECT id + 100, b1, b3, b17, vb, vb5, raw, place FROM bits;

INSERT INTO lists SELECT id + 100, ints, texts, nums, dates, flags, moods, stamps, u, vc, big, f8, r, nr, tr, tzr, dr, ir8 FROM lists;

INSERT INTO keyless VALUES (2, 'two'), (3, NULL);

UPDATE full_identity SET a = 'b' WHERE id = 1;

UPDATE full_identity SET id = 3 WHERE id = 2;

DELETE FROM full_identity WHERE id = 1;

UPDATE by_index SET c = 'd' WHERE a = 1;

UPDATE by_index SET b = 'l' WHERE a = 1;

DELETE FROM by_index;

UPDATE toasted SET n = 2 WHERE id = 1;

UPDATE toasted SET id = 2 WHERE id = 1;

DELETE FROM toasted;

INSERT INTO keyless_full VALUES (1, 'x');

UPDATE keyless_full SET b = 'y';

DELETE FROM keyless_full;

UPDATE "Other Schema"."Mixed Case" SET "a-b" = NULL;

BEGIN; INSERT INTO changing VALUES (99, 'rolled back'); ROLLBACK;

ALTER TABLE changing ADD COLUMN b int NOT NULL DEFAULT 5;

INSERT INTO changing VALUES (2, 'more', 6);

ALTER TABLE changing DROP COLUMN a;

UPDATE changing SET b = 7 WHERE id = 2;

ALTER TABLE changing RENAME COLUMN b TO c;

ALTER TABLE changing ALTER COLUMN c TYPE numeric(10, 2);

INSERT INTO changing VALUES (3, 1.5);

TRUNCATE changing;

BEGIN; INSERT INTO changing VALUES (4, 1); UPDATE changing SET c = 2 WHERE id = 4; DELETE FROM changing WHERE id = 4; INSERT INTO changing VALUES (5, 5); COMMIT;

SELECT pg_logical_emit_message(true, 'prefix', 'in a transaction');

SELECT pg_logical_emit_message(false, 'prefix', 'outside');

INSERT INTO changing VALUES (1000, 0);
