-- The shop's story: activity by kind, the sessions opened, what purchases came to.

CREATE STREAM IF NOT EXISTS user_activity (id STRING KEY)
    WITH (KAFKA_TOPIC = 'user-activity', VALUE_FORMAT = 'AVRO', TIMESTAMP = 'event_time_ms');

CREATE TABLE IF NOT EXISTS activity_per_minute
    WITH (KAFKA_TOPIC = 'activity-per-minute', VALUE_FORMAT = 'AVRO', PARTITIONS = 1) AS
    SELECT kind,
           COUNT_ONCE(event_id, TRUE) AS events,
           COUNT_ONCE(event_id, sequence = 0) AS sessions,
           SUM_ONCE(event_id, amount_cents) AS revenue_cents
    FROM user_activity
    WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 30 MINUTES)
    GROUP BY kind;
