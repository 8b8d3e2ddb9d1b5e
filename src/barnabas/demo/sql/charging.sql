-- The charging stations' story: how available they are, and the energy that they deliver.

-- Rows of a table in PostgreSQL. A station is older than its events, whenever its row was changed.
CREATE TABLE IF NOT EXISTS stations (id STRING PRIMARY KEY)
    WITH (KAFKA_TOPIC = 'stations', VALUE_FORMAT = 'AVRO', TIMESTAMP = 'since_ms');

CREATE STREAM IF NOT EXISTS station_status (id STRING KEY)
    WITH (KAFKA_TOPIC = 'station-status', VALUE_FORMAT = 'AVRO', TIMESTAMP = 'event_time_ms');

CREATE STREAM IF NOT EXISTS charging_events (id STRING KEY)
    WITH (KAFKA_TOPIC = 'charging-events', VALUE_FORMAT = 'AVRO', TIMESTAMP = 'event_time_ms');

-- The latest state is that of the greatest sequence: a late report does not take its place.
CREATE TABLE IF NOT EXISTS station_availability
    WITH (KAFKA_TOPIC = 'station-availability', VALUE_FORMAT = 'AVRO', PARTITIONS = 1) AS
    SELECT e.id AS station_id,
           LATEST_BY_OFFSET(s.name) AS name,
           LATEST_BY_OFFSET(s.city) AS city,
           TOPK(e.sequence, e.state, e.event_time_ms, 1)[1]->`col0` AS state,
           TOPK(e.sequence, e.state, e.event_time_ms, 1)[1]->`col1` AS state_time_ms,
           MAX(e.sequence) AS state_sequence,
           COUNT_ONCE(e.event_id, TRUE) AS reports,
           COUNT_ONCE(e.event_id, e.state = 'available') AS available_reports
    FROM station_status e
    JOIN stations s ON e.id = s.id
    WINDOW TUMBLING (SIZE 15 MINUTES, GRACE PERIOD 30 MINUTES)
    GROUP BY e.id;

CREATE TABLE IF NOT EXISTS energy_per_minute
    WITH (KAFKA_TOPIC = 'energy-per-minute', VALUE_FORMAT = 'AVRO', PARTITIONS = 1) AS
    SELECT s.city AS city,
           SUM_ONCE(e.event_id, e.energy_wh) AS energy_wh,
           COUNT_ONCE(e.event_id, e.kind = 'meter') AS readings,
           COUNT_ONCE(e.event_id, e.kind = 'start') AS charges_started,
           COUNT_ONCE(e.event_id, e.kind = 'stop') AS charges_stopped,
           COUNT_ONCE(e.event_id, e.kind = 'fault') AS faults
    FROM charging_events e
    JOIN stations s ON e.id = s.id
    WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 30 MINUTES)
    GROUP BY s.city;
