// Asks Apache Avro's Java library what it says to schemas and to pairs of schemas.
//
//     java -cp $JARS tools/avro/Verdicts.java tests/unit/registry/avro/verdicts.json
//
// JARS: avro 1.12.1, slf4j-api, jackson-core, -databind and -annotations. The file holds the cases
// and gets the verdicts; a new case is a line {"text", "references": [text]?} or {"reader", "writer"}.
//
// A schema is read twice, as a registry reads: "new" with strict names and checked defaults, "old"
// with names of any alphabet, unchecked namespaces and defaults. Each is the canonical text, null if
// refused; "old" is absent if it is the same. "normal" is Confluent's normal form where it is not
// the canonical text, asked of its class AvroSchema if that is on the class path.
// Of a pair, "faults" are the kinds, paths and details; null if Java fails with an exception.

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

public class Verdicts {
  static final ObjectMapper MAPPER = new ObjectMapper();
  static final ObjectMapper ASCII =
      JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();

  public static void main(String[] args) throws Exception {
    Path file = Path.of(args[0]);
    ObjectNode table = (ObjectNode) MAPPER.readTree(Files.readString(file));
    for (JsonNode node : table.withArray("schemas")) {
      judge((ObjectNode) node);
    }
    Iterator<JsonNode> pairs = table.withArray("pairs").elements();
    while (pairs.hasNext()) {
      try {
        compare((ObjectNode) pairs.next());
      } catch (AvroRuntimeException e) {
        pairs.remove(); // no pair of schemas
      }
    }
    StringBuilder out = new StringBuilder("{\"about\": ").append(table.get("about"));
    for (String part : List.of("schemas", "pairs")) {
      String separator = ",\n\"" + part + "\": [\n";
      for (JsonNode node : table.get(part)) {
        out.append(separator).append(ASCII.writeValueAsString(node));
        separator = ",\n";
      }
      out.append("\n]");
    }
    Files.writeString(file, out.append("}\n"));
  }

  static void judge(ObjectNode node) {
    List<String> references = new ArrayList<>();
    node.path("references").forEach(reference -> references.add(reference.textValue()));
    String text = node.get("text").textValue();
    node.put("new", canonical(text, references, true));
    String old = canonical(text, references, false);
    if (!Objects.equals(old, node.get("new").textValue())) {
      node.put("old", old);
    }
    if (node.get("new").isNull()) {
      return;
    }
    if (!references.isEmpty()) {
      node.put("resolved", new Read(text, references, true).schema.toString());
    }
    normalize(node, text, references);
  }

  static String canonical(String text, List<String> references, boolean strict) {
    try {
      Read read = new Read(text, references, strict);
      return read.schema.toString(read.references, false);
    } catch (RuntimeException e) {
      return null;
    }
  }

  static void normalize(ObjectNode node, String text, List<String> references) {
    Map<String, String> resolved = new LinkedHashMap<>();
    references.forEach(reference -> resolved.put("r" + resolved.size(), reference));
    try {
      Class<?> type = Class.forName("io.confluent.kafka.schemaregistry.avro.AvroSchema");
      Object schema = type.getConstructor(String.class, List.class, Map.class, Integer.class, boolean.class)
              .newInstance(text, List.of(), resolved, null, true);
      Object normal = type.getMethod("normalize").invoke(schema);
      String canonical = (String) type.getMethod("canonicalString").invoke(normal);
      if (!canonical.equals(node.get("new").textValue())) {
        node.put("normal", canonical);
      }
    } catch (ClassNotFoundException e) {
      return;
    } catch (ReflectiveOperationException e) {
      node.putNull("normal");
    }
  }

  static void compare(ObjectNode node) {
    Schema reader = new Read(node.get("reader").textValue(), List.of(), false).schema;
    Schema writer = new Read(node.get("writer").textValue(), List.of(), false).schema;
    ArrayNode faults = node.putArray("faults");
    try {
      SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getResult().getIncompatibilities()
          .forEach(fault -> faults.addArray().add(fault.getType().name()).add(fault.getLocation())
              .add(fault.getMessage()));
    } catch (AvroRuntimeException e) {
      node.putNull("faults");
    }
  }

  static class Read {
    final Schema schema;
    final List<Schema> references = new ArrayList<>();

    Read(String text, List<String> texts, boolean strict) {
      Schema.Parser parser = parser(strict);
      texts.forEach(parser::parse);
      schema = parser.parse(text);
      if (!strict) {
        checkNames(schema, Collections.newSetFromMap(new IdentityHashMap<>()));
      }
      Schema.Parser again = parser(strict);
      texts.forEach(reference -> references.add(again.parse(reference)));
    }

    static Schema.Parser parser(boolean strict) {
      Schema.Parser parser =
          new Schema.Parser(strict ? NameValidator.STRICT_VALIDATOR : NameValidator.NO_VALIDATION);
      return parser.setValidateDefaults(strict);
    }

    static void checkNames(Schema schema, Set<Schema> seen) {
      if (!seen.add(schema)) {
        return;
      }
      Set<String> names = new HashSet<>();
      switch (schema.getType()) {
        case RECORD:
          names.add(schema.getName());
          for (Schema.Field field : schema.getFields()) {
            names.add(field.name());
            checkNames(field.schema(), seen);
          }
          break;
        case ENUM:
          names.addAll(schema.getEnumSymbols());
          names.add(schema.getName());
          break;
        case FIXED:
          names.add(schema.getName());
          break;
        case ARRAY:
          checkNames(schema.getElementType(), seen);
          break;
        case MAP:
          checkNames(schema.getValueType(), seen);
          break;
        case UNION:
          schema.getTypes().forEach(branch -> checkNames(branch, seen));
          break;
        default:
          break;
      }
      for (String name : names) {
        if (!NameValidator.UTF_VALIDATOR.validate(name).isOK()) {
          throw new IllegalArgumentException(String.valueOf(name));
        }
      }
    }
  }
}
