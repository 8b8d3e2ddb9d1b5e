INSERT INTO numbers VALUES
  (1, 1, 2, 3, 1.5, 2.25, 123.4567, 123.45, 77, 12.34, 99, false, 1, 'y', 2, 5, 1.234),
  (2, -32768, -2147483648, -9223372036854775808, 'NaN', 'Infinity', 'NaN', -0.01, -7, -1000, 4294967295,
   true, NULL, NULL, 0, NULL, NULL),
  (3, 0, NULL, NULL, NULL, NULL, 1e30, 0, NULL, NULL, NULL, true, NULL, '', 1, NULL, -1);
INSERT INTO texts VALUES
  ('a', 'b', E'line\nä\t\\ "q"', 'sad', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": 1,  "b":[1,2]}',
   '{"b": 1, "a": null}', '<a>x</a>', '10.0.0.1/8', '10.1.0.0/16', '08:00:2b:01:02:03',
   '08:00:2b:01:02:03:04:05', 'z', 'the quick fox'),
  ('c', 'd', NULL, 'it''s, happy', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO times VALUES
  (1, '2020-02-29', '13:14:15.123456', '13:14:15', '13:14:15.678', '13:14:15.5+02', '2021-03-04 05:06:07.123456',
   '2021-03-04 05:06:07', '2021-03-04 05:06:07.891', '2021-03-04 05:06:07.123456+03', '2021-03-04 05:06:07.1+00',
   '1 year 2 months 3 days 4 hours 5 minutes 6.789 seconds'),
  (2, '1600-01-01', '00:00', '23:59:59', '00:00:00.001', '00:00-11:30', '1899-01-01 00:00',
   '1900-01-01 00:00', '1969-12-31 23:59:59.999', '1883-11-18 12:00+00', NULL, '-1 day -00:00:01'),
  (3, NULL, '24:00', NULL, NULL, NULL, 'infinity', NULL, NULL, 'infinity', NULL, NULL),
  (4, NULL, NULL, NULL, NULL, NULL, '-infinity', NULL, NULL, '-infinity', NULL, '-1 year 1 month'),
  (5, '12020-01-01', NULL, NULL, NULL, NULL, '12020-01-01 00:00', NULL, NULL, '12020-01-01 00:00+00', NULL, '00:00:00.000001');
INSERT INTO bits VALUES
  (1, B'1', B'101', B'10000000000000001', B'1100', B'1', '\xdeadbeef00', '(1.5,-2)'),
  (2, B'0', NULL, NULL, B'', NULL, '', NULL);
INSERT INTO lists VALUES
  (1, '{1,NULL,3}', '{"a","b,c",NULL,"NULL","\"q\"",""}', '{1.5,2.25}', '{2020-01-01,1999-12-31}', '{t,f}',
   '{sad,"it''s, happy"}', '{"2021-03-04 05:06:07.5+01"}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{ab,cde}',
   '{1,9223372036854775807}', '{1.5,-2}', '[1,10)', '(1.5,2.5]', '[2020-01-01 00:00,2020-01-02 00:00)',
   '["2020-01-01 00:00+00","2020-01-02 00:00+00")', '[2020-01-01,2020-02-01)', '[1,2)'),
  (2, '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'empty', '(,5)', NULL, NULL, NULL, NULL);
INSERT INTO keyless VALUES (1, 'one');
INSERT INTO full_identity VALUES (1, 'a', repeat('0123456789', 1000)), (2, NULL, NULL);
INSERT INTO by_index VALUES (1, 'k', 'c');
INSERT INTO toasted SELECT 1, 1, string_agg(md5(i::text), ''), decode(string_agg(md5(i::text), ''), 'hex'),
  array_agg(md5(i::text)) FROM generate_series(1, 300) i;
INSERT INTO "Other Schema"."Mixed Case" VALUES (1, 'x', 'ö');
INSERT INTO changing VALUES (1, 'before');
