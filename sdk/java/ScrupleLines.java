import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;

/** Lines of JSON: requests that are received, and replies that are sent. */
final class ScrupleLines {
    private final InputStream in;
    private final byte[] received = new byte[1 << 16];
    private int first, last; // the range of received bytes that have not been read

    ScrupleLines(InputStream in) {
        this.in = in;
    }

    /** Returns the next line, or null at the end. */
    String readLine() throws IOException {
        ByteArrayOutputStream begun = null;
        for (int i = first; ; i++) {
            if (i == last) { // the rest of the line is still to come
                if (first < last) {
                    begun = begun == null ? new ByteArrayOutputStream() : begun;
                    begun.write(received, first, last - first);
                }
                first = i = 0;
                last = in.read(received);
                if (last <= 0) {
                    last = 0;
                    return null;
                }
            }
            if (received[i] == '\n') {
                int from = first;
                first = i + 1;
                if (begun == null) {
                    return new String(received, from, i - from, StandardCharsets.UTF_8);
                }
                begun.write(received, from, i - from);
                return begun.toString(StandardCharsets.UTF_8);
            }
        }
    }

    /** Divides a text at each of these characters. */
    static String[] parts(String text, char at) {
        int count = 1;
        for (int i = 0; i < text.length(); i++) {
            count += text.charAt(i) == at ? 1 : 0;
        }
        String[] parts = new String[count];
        int from = 0, part = 0;
        for (int i = 0; i <= text.length(); i++) {
            if (i == text.length() || text.charAt(i) == at) {
                parts[part++] = text.substring(from, i);
                from = i + 1;
            }
        }
        return parts;
    }

    /** Sends a line at once. */
    static void send(OutputStream out, String line) throws IOException {
        out.write(line.concat("\n").getBytes(StandardCharsets.UTF_8));
    }

    /** Makes an object of JSON from keys and values in turn. */
    static Map<String, Object> object(Object... pairs) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            map.put((String) pairs[i], pairs[i + 1]);
        }
        return map;
    }

    static String json(Object value) {
        StringBuilder text = new StringBuilder();
        write(text, value);
        return text.toString();
    }

    private static void write(StringBuilder text, Object value) {
        if (value instanceof Map) {
            String before = "{";
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                text.append(before);
                write(text, entry.getKey());
                text.append(':');
                write(text, entry.getValue());
                before = ",";
            }
            text.append(before.equals("{") ? "{}" : "}");
        } else if (value instanceof List) {
            String before = "[";
            for (Object element : (List<?>) value) {
                text.append(before);
                write(text, element);
                before = ",";
            }
            text.append(before.equals("[") ? "[]" : "]");
        } else if (value instanceof Boolean || value instanceof Number && Double.isFinite(((Number) value).doubleValue())) {
            text.append(value);
        } else {
            text.append('"');
            for (char c : String.valueOf(value).toCharArray()) {
                text.append(c < ' ' || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : c);
            }
            text.append('"');
        }
    }
}
