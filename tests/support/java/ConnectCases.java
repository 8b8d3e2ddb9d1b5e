import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.ConnectSchema;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** What Kafka's transforms, predicates and converters make of cases: one JSON object a line. */
public final class ConnectCases {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private ConnectCases() { }

    public static void main(String[] arguments) throws Exception {
        System.setProperty("user.timezone", "UTC");
        java.util.TimeZone.setDefault(java.util.TimeZone.getTimeZone("UTC"));
        ArrayNode results = JSON.arrayNode();
        for (JsonNode one : MAPPER.readTree(new File(arguments[0]))) {
            results.add(run(one));
        }
        MAPPER.writeValue(new File(arguments[1]), results);
    }

    private static JsonNode run(JsonNode one) {
        try {
            return switch (one.get("kind").asText()) {
                case "transform" -> transform(one);
                case "predicate" -> predicate(one);
                case "converter" -> converter(one);
                case "header" -> header(one);
                case "definition" -> definition(one);
                default -> throw new IllegalArgumentException(one.get("kind").asText());
            };
        } catch (Throwable thrown) {
            return error(thrown);
        }
    }

    private static JsonNode error(Throwable thrown) {
        return JSON.objectNode().put("error", thrown.getClass().getName()).put("text", thrown.getMessage());
    }

    private static Object make(JsonNode one) throws Exception {
        return Class.forName(one.get("class").asText()).getDeclaredConstructor().newInstance();
    }

    private static Map<String, String> settings(JsonNode one) {
        Map<String, String> settings = new LinkedHashMap<>();
        one.get("settings").properties().forEach(e -> settings.put(e.getKey(), e.getValue().asText()));
        return settings;
    }

    @SuppressWarnings("unchecked")
    private static <R extends ConnectRecord<R>> JsonNode transform(JsonNode one) throws Exception {
        Transformation<R> transform = (Transformation<R>) make(one);
        transform.configure(settings(one));
        ArrayNode results = JSON.arrayNode();
        for (JsonNode record : one.get("records")) {
            try {
                results.add(encode(transform.apply((R) record(record))));
            } catch (Throwable thrown) {
                results.add(error(thrown));
            }
        }
        return results;
    }

    @SuppressWarnings("unchecked")
    private static <R extends ConnectRecord<R>> JsonNode predicate(JsonNode one) throws Exception {
        Predicate<R> predicate = (Predicate<R>) make(one);
        predicate.configure(settings(one));
        ArrayNode results = JSON.arrayNode();
        for (JsonNode record : one.get("records")) {
            results.add(predicate.test((R) record(record)));
        }
        return results;
    }

    private static JsonNode converter(JsonNode one) throws Exception {
        Converter converter = (Converter) make(one);
        converter.configure(settings(one), one.path("is_key").asBoolean());
        ArrayNode results = JSON.arrayNode();
        for (JsonNode step : one.get("steps")) {
            try {
                if (step.has("data")) {
                    JsonNode data = step.get("data");
                    results.add(pair(converter.toConnectData("t", data.isNull() ? null : data.binaryValue())));
                } else {
                    Schema schema = schema(step.get("schema"));
                    results.add(bytes(converter.fromConnectData("t", schema, value(schema, step.get("value")))));
                }
            } catch (Throwable thrown) {
                results.add(error(thrown));
            }
        }
        return results;
    }

    private static JsonNode header(JsonNode one) throws Exception {
        HeaderConverter converter = (HeaderConverter) make(one);
        converter.configure(settings(one));
        ArrayNode results = JSON.arrayNode();
        for (JsonNode step : one.get("steps")) {
            try {
                if (step.has("data")) {
                    results.add(pair(converter.toConnectHeader("t", "h", step.get("data").binaryValue())));
                } else {
                    Schema schema = schema(step.get("schema"));
                    results.add(bytes(converter.fromConnectHeader("t", "h", schema, value(schema, step.get("value")))));
                }
            } catch (Throwable thrown) {
                results.add(error(thrown));
            }
        }
        return results;
    }

    private static JsonNode bytes(byte[] data) {
        return JSON.objectNode().put("data", data == null ? null : Base64.getEncoder().encodeToString(data));
    }

    private static JsonNode pair(SchemaAndValue pair) {
        ObjectNode node = JSON.objectNode();
        if (pair == null) {
            node.putNull("schema");
            return node.putNull("value");
        }
        node.set("schema", encode(pair.schema()));
        node.set("value", encode(pair.schema(), pair.value()));
        return node;
    }

    private static JsonNode definition(JsonNode one) throws Exception {
        Object plugin = make(one);
        ConfigDef definition = plugin instanceof Transformation<?> t ? t.config()
            : plugin instanceof Predicate<?> p ? p.config()
            : plugin instanceof Converter c ? c.config() : ((HeaderConverter) plugin).config();
        ObjectNode settings = JSON.objectNode();
        for (ConfigDef.ConfigKey key : definition.configKeys().values()) {
            ObjectNode setting = settings.putObject(key.name);
            setting.put("type", key.type.name()).put("importance", key.importance.name());
            setting.put("required", !key.hasDefault());
            setting.put("default", key.hasDefault() ? String.valueOf(key.defaultValue) : null);
            setting.put("group", key.group).put("order", key.orderInGroup);
            setting.put("width", key.width.name()).put("display_name", key.displayName);
        }
        return settings;
    }

    private static ConnectRecord<?> record(JsonNode node) {
        Schema keySchema = schema(node.get("key_schema"));
        Schema valueSchema = schema(node.get("value_schema"));
        Object key = value(keySchema, node.get("key"));
        Object value = value(valueSchema, node.get("value"));
        Long timestamp = node.get("timestamp").isNull() ? null : node.get("timestamp").asLong();
        Integer partition = node.get("partition").isNull() ? null : node.get("partition").asInt();
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode header : node.get("headers")) {
            Schema schema = schema(header.get("schema"));
            headers.add(header.get("key").asText(), new SchemaAndValue(schema, value(schema, header.get("value"))));
        }
        String topic = node.get("topic").asText();
        if (node.get("offset").isNull()) {
            return new SourceRecord(Map.of(), Map.of(), topic, partition, keySchema, key, valueSchema, value,
                timestamp, headers);
        }
        return new SinkRecord(topic, partition == null ? 0 : partition, keySchema, key, valueSchema, value,
            node.get("offset").asLong(), timestamp, TimestampType.CREATE_TIME, headers);
    }

    private static JsonNode encode(ConnectRecord<?> record) {
        if (record == null) {
            return JSON.nullNode();
        }
        ObjectNode node = JSON.objectNode();
        node.put("topic", record.topic()).put("partition", record.kafkaPartition());
        node.set("key_schema", encode(record.keySchema()));
        node.set("key", encode(record.keySchema(), record.key()));
        node.set("value_schema", encode(record.valueSchema()));
        node.set("value", encode(record.valueSchema(), record.value()));
        node.put("timestamp", record.timestamp());
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            ObjectNode one = headers.addObject();
            one.put("key", header.key());
            one.set("schema", encode(header.schema()));
            one.set("value", encode(header.schema(), header.value()));
        }
        return node;
    }

    private static Schema schema(JsonNode node) {
        if (node == null || node.isNull()) {
            return null;
        }
        Schema.Type type = Schema.Type.valueOf(node.get("type").asText());
        List<Field> fields = null;
        if (type == Schema.Type.STRUCT) {
            fields = new ArrayList<>();
            for (JsonNode field : node.get("fields")) {
                fields.add(new Field(field.get(0).asText(), fields.size(), schema(field.get(1))));
            }
        }
        Map<String, String> parameters = null;
        if (node.has("parameters")) {
            parameters = new LinkedHashMap<>();
            for (Map.Entry<String, JsonNode> e : node.get("parameters").properties()) {
                parameters.put(e.getKey(), e.getValue().asText());
            }
        }
        Schema keys = schema(node.get("keys"));
        Schema values = schema(node.get("values"));
        String name = node.has("name") ? node.get("name").asText() : null;
        Integer version = node.has("version") ? node.get("version").asInt() : null;
        String doc = node.has("doc") ? node.get("doc").asText() : null;
        boolean optional = node.path("optional").asBoolean();
        ConnectSchema made = new ConnectSchema(type, optional, null, name, version, doc, parameters, fields, keys, values);
        if (!node.has("default")) {
            return made;
        }
        Object defaultValue = value(made, node.get("default"));
        return new ConnectSchema(type, optional, defaultValue, name, version, doc, parameters, fields, keys, values);
    }

    private static JsonNode encode(Schema schema) {
        if (schema == null) {
            return JSON.nullNode();
        }
        ObjectNode node = JSON.objectNode();
        node.put("type", schema.type().name());
        if (schema.isOptional()) {
            node.put("optional", true);
        }
        if (schema.name() != null) {
            node.put("name", schema.name());
        }
        if (schema.version() != null) {
            node.put("version", schema.version());
        }
        if (schema.doc() != null) {
            node.put("doc", schema.doc());
        }
        if (schema.parameters() != null && !schema.parameters().isEmpty()) {
            ObjectNode parameters = node.putObject("parameters");
            schema.parameters().forEach(parameters::put);
        }
        if (schema.type() == Schema.Type.STRUCT) {
            ArrayNode fields = node.putArray("fields");
            for (Field field : schema.fields()) {
                fields.addArray().add(field.name()).add(encode(field.schema()));
            }
        }
        if (schema.type() == Schema.Type.MAP) {
            node.set("keys", encode(schema.keySchema()));
        }
        if (schema.type() == Schema.Type.MAP || schema.type() == Schema.Type.ARRAY) {
            node.set("values", encode(schema.valueSchema()));
        }
        if (schema.defaultValue() != null) {
            node.set("default", encode(schema, schema.defaultValue()));
        }
        return node;
    }

    /** With a schema its type says how JSON is read; without one an object with one tag does. */
    private static Object value(Schema schema, JsonNode node) {
        if (node == null || node.isNull()) {
            return null;
        }
        if (schema == null || (node.isObject() && node.has("any"))) {
            return untyped(node.has("any") ? node.get("any") : node);
        }
        if (schema.name() != null && schema.name().startsWith("org.apache.kafka.connect.data.")) {
            return schema.name().endsWith("Decimal") ? new BigDecimal(node.asText()) : new Date(node.asLong());
        }
        switch (schema.type()) {
            case INT8: return (byte) node.asInt();
            case INT16: return (short) node.asInt();
            case INT32: return node.asInt();
            case INT64: return node.asLong();
            case FLOAT32: return (float) node.asDouble();
            case FLOAT64: return node.asDouble();
            case BOOLEAN: return node.asBoolean();
            case STRING: return node.asText();
            case BYTES: return Base64.getDecoder().decode(node.asText());
            case ARRAY: {
                List<Object> items = new ArrayList<>();
                node.forEach(item -> items.add(value(schema.valueSchema(), item)));
                return items;
            }
            case MAP: {
                Map<Object, Object> entries = new LinkedHashMap<>();
                node.forEach(e -> entries.put(value(schema.keySchema(), e.get(0)), value(schema.valueSchema(), e.get(1))));
                return entries;
            }
            default: {
                Struct struct = new Struct(schema);
                int place = 0;
                for (Field field : schema.fields()) {
                    Object item = value(field.schema(), node.get(place++));
                    if (item != null) {
                        struct.put(field, item);
                    }
                }
                return struct;
            }
        }
    }

    private static Object untyped(JsonNode node) {
        if (node.isNull()) {
            return null;
        }
        if (node.isBoolean()) {
            return node.asBoolean();
        }
        if (node.isTextual()) {
            return node.asText();
        }
        Map.Entry<String, JsonNode> only = node.properties().iterator().next();
        JsonNode inner = only.getValue();
        switch (only.getKey()) {
            case "long": return inner.asLong();
            case "double": return inner.asDouble();
            case "bytes": return Base64.getDecoder().decode(inner.asText());
            case "decimal": return new BigDecimal(inner.asText());
            case "moment": return new Date(inner.asLong());
            case "list": {
                List<Object> items = new ArrayList<>();
                inner.forEach(item -> items.add(untyped(item)));
                return items;
            }
            default: {
                Map<Object, Object> entries = new HashMap<>();
                inner.forEach(e -> entries.put(untyped(e.get(0)), untyped(e.get(1))));
                return entries;
            }
        }
    }

    private static JsonNode encode(Schema schema, Object value) {
        if (value == null) {
            return JSON.nullNode();
        }
        if (value instanceof BigDecimal decimal) {
            return schema == null ? JSON.objectNode().put("decimal", decimal.toString()) : JSON.textNode(decimal.toString());
        }
        if (value instanceof Date date) {
            return schema == null ? JSON.objectNode().put("moment", date.getTime()) : JSON.numberNode(date.getTime());
        }
        if (value instanceof Struct struct) {
            ArrayNode values = JSON.arrayNode();
            for (Field field : struct.schema().fields()) {
                values.add(encode(field.schema(), struct.getWithoutDefault(field.name())));
            }
            return values;
        }
        if (value instanceof Boolean flag) {
            return JSON.booleanNode(flag);
        }
        if (value instanceof String text) {
            return JSON.textNode(text);
        }
        if (value instanceof List<?> items) {
            ArrayNode values = JSON.arrayNode();
            items.forEach(item -> values.add(encode(schema == null ? null : schema.valueSchema(), item)));
            return schema == null ? JSON.objectNode().set("list", values) : values;
        }
        if (value instanceof Map<?, ?> entries) {
            ArrayNode values = JSON.arrayNode();
            entries.forEach((k, v) -> values.addArray()
                .add(encode(schema == null ? null : schema.keySchema(), k))
                .add(encode(schema == null ? null : schema.valueSchema(), v)));
            return schema == null ? JSON.objectNode().set("map", values) : values;
        }
        if (value instanceof byte[] || value instanceof ByteBuffer) {
            byte[] data = value instanceof byte[] array ? array : ((ByteBuffer) value).array();
            String text = Base64.getEncoder().encodeToString(data);
            return schema == null ? JSON.objectNode().put("bytes", text) : JSON.textNode(text);
        }
        if (value instanceof Float || value instanceof Double) {
            double number = ((Number) value).doubleValue();
            JsonNode node = Double.isFinite(number) ? JSON.numberNode(number) : JSON.textNode(String.valueOf(number));
            return schema == null ? JSON.objectNode().set("double", node) : node;
        }
        if (value instanceof Number number) {
            return schema == null ? JSON.objectNode().put("long", number.longValue()) : JSON.numberNode(number.longValue());
        }
        return JSON.textNode(String.valueOf(value));
    }
}
