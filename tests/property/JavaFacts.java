import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.function.DoubleUnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;

/**
 * Tells what Java's library does with values.
 *
 * A line in: what to do and its arguments, with tabs between them. Texts are four hexadecimal
 * digits for each UTF-16 unit, doubles their bits in hexadecimal. A line out: the result, words
 * with spaces between them, texts after "=", "-" for null, "error" for an exception.
 */
public class JavaFacts {
    private static final int MATCHES_MAX = 50;

    @SuppressWarnings("deprecation")
    private static final ObjectMapper JSON = new ObjectMapper()
        .disable(JsonGenerator.Feature.AUTO_CLOSE_TARGET)
        .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
        .enable(JsonGenerator.Feature.WRITE_BIGDECIMAL_AS_PLAIN)
        .setNodeFactory(JsonNodeFactory.withExactBigDecimals(true));

    public static void main(final String[] arguments) throws Exception {
        final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = answer(line.split("\t", -1));
            } catch (final Exception | StackOverflowError e) {
                answer = "error " + e.getClass().getSimpleName();
            }
            System.out.println(answer);
        }
    }

    private static String answer(final String[] words) throws Exception {
        final String first = words[0].equals("double") || words[0].equals("round") ? "" : text(words[1]);
        switch (words[0]) {
            case "find":
                return find(Pattern.compile(first).matcher(text(words[2])));
            case "split": {
                final StringBuilder pieces = new StringBuilder("ok");
                for (final String piece : Pattern.compile(first).split(text(words[2]))) {
                    pieces.append(' ').append(told(piece));
                }
                return pieces.toString();
            }
            case "replace":
                return told(first.replaceAll(text(words[2]), text(words[3])));
            case "uri": {
                final URI uri = new URI(first);
                return String.join(" ", told(uri.getScheme()), told(uri.getHost()),
                    String.valueOf(uri.getPort()), told(uri.getPath()), told(uri.getQuery()),
                    told(uri.getFragment()));
            }
            case "url":
                return told(URLDecoder.decode(first, "UTF-8"));
            case "base64":
                return told(new String(Base64.getDecoder().decode(first), StandardCharsets.ISO_8859_1));
            case "utf8":
                return told(new String(first.getBytes(StandardCharsets.ISO_8859_1), StandardCharsets.UTF_8));
            case "json": {
                final JsonNode node = JSON.reader().readTree(first);
                return node.isMissingNode()
                    ? "missing" : told(node.toString()) + " " + told(JSON.writeValueAsString(node));
            }
            case "round": {
                final BigDecimal value = BigDecimal.valueOf(number(words[1]));
                final RoundingMode mode = value.signum() > 0 ? RoundingMode.HALF_UP : RoundingMode.HALF_DOWN;
                return bits(value.setScale(Integer.parseInt(words[2]), mode).doubleValue());
            }
            case "double":
                return calculated(words[1], number(words[2]), number(words[3]));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String find(final Matcher matcher) {
        final StringBuilder found = new StringBuilder("ok");
        for (int n = 0; n < MATCHES_MAX && matcher.find(); n++) {
            found.append(' ').append(matcher.start()).append(',').append(matcher.end());
            for (int group = 1; group <= matcher.groupCount(); group++) {
                found.append(',').append(told(matcher.group(group)));
            }
        }
        return found.toString();
    }

    private static String calculated(final String name, final double x, final double y) {
        final DoubleUnaryOperator function;
        switch (name) {
            case "ATAN2": return bits(Math.atan2(x, y));
            case "POWER": return bits(Math.pow(x, y));
            case "ROUND": return String.valueOf(Math.round(x));
            case "TRUNC": return String.valueOf((long) x);
            case "SIGN": return String.valueOf((int) Math.signum(x));
            case "EXP": function = Math::exp; break;
            case "LN": function = Math::log; break;
            case "SQRT": function = Math::sqrt; break;
            case "CBRT": function = Math::cbrt; break;
            case "SIN": function = Math::sin; break;
            case "COS": function = Math::cos; break;
            case "TAN": function = Math::tan; break;
            case "COT": function = value -> 1 / Math.tan(value); break;
            case "ASIN": function = Math::asin; break;
            case "ACOS": function = Math::acos; break;
            case "ATAN": function = Math::atan; break;
            case "SINH": function = Math::sinh; break;
            case "COSH": function = Math::cosh; break;
            case "TANH": function = Math::tanh; break;
            case "DEGREES": function = Math::toDegrees; break;
            case "RADIANS": function = Math::toRadians; break;
            case "FLOOR": function = Math::floor; break;
            case "CEIL": function = Math::ceil; break;
            default: throw new IllegalArgumentException(name);
        }
        return bits(function.applyAsDouble(x));
    }

    private static double number(final String bits) {
        return Double.longBitsToDouble(Long.parseUnsignedLong(bits, 16));
    }

    private static String bits(final double value) {
        return Long.toHexString(Double.doubleToLongBits(value));
    }

    private static String text(final String digits) {
        final StringBuilder text = new StringBuilder();
        for (int at = 0; at < digits.length(); at += 4) {
            text.append((char) Integer.parseInt(digits.substring(at, at + 4), 16));
        }
        return text.toString();
    }

    private static String told(final String text) {
        if (text == null) {
            return "-";
        }
        final StringBuilder digits = new StringBuilder("=");
        for (final char unit : text.toCharArray()) {
            digits.append(String.format("%04x", (int) unit));
        }
        return digits.toString();
    }
}
