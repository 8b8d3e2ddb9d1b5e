// Writes kafka.txt with the classes of Kafka 4.3.1: compiled with connect-mirror, connect-mirror-client
// and kafka-clients on the class path, in the package of the classes it asks.
package org.apache.kafka.connect.mirror;
import java.util.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.clients.consumer.ConsumerRecord;
public class Golden {
  static class Store extends OffsetSyncStore {
    Store() { super(); }
    @Override void backingStoreStart() {}
  }
  static String hex(byte[] b) { return HexFormat.of().formatHex(b); }
  public static void main(String[] a) {
    TopicPartition tp = new TopicPartition("orders", 7);
    OffsetSync s = new OffsetSync(tp, 123456789012L, 42L);
    System.out.println("sync " + hex(s.recordKey()) + " " + hex(s.recordValue()));
    Checkpoint c = new Checkpoint("grüppe", new TopicPartition("west.orders", 3), 9L, 8L, "meta");
    System.out.println("checkpoint " + hex(c.recordKey()) + " " + hex(c.recordValue()));
    Heartbeat h = new Heartbeat("west", "east", 1700000000123L);
    System.out.println("heartbeat " + hex(h.recordKey()) + " " + hex(h.recordValue()));
    ReplicationPolicy d = new DefaultReplicationPolicy(), i = new IdentityReplicationPolicy();
    ((DefaultReplicationPolicy) d).configure(Map.of("replication.policy.separator", "."));
    ((DefaultReplicationPolicy) i).configure(Map.of("source.cluster.alias", "west"));
    for (ReplicationPolicy p : List.of(d, i)) for (String t : List.of("orders", "west.orders", "east.west.orders", "west.", ".x", "a..b", "heartbeats", "west.heartbeats", "x.internal", "x-internal", "__x", "west.checkpoints.internal"))
      System.out.println("policy " + (p == d ? "default" : "identity") + " " + t + " " + p.formatRemoteTopic("west", t) + " " + p.topicSource(t) + " " + p.upstreamTopic(t) + " " + p.originalTopic(t) + " " + p.isInternalTopic(t) + " " + p.isHeartbeatsTopic(t));
    for (int seed = 0; seed < 12; seed++) {
      Random r = new Random(seed);
      Store store = new Store();
      boolean first = seed % 3 == 0;
      long up = r.nextInt(50), down = r.nextInt(50);
      StringBuilder in = new StringBuilder(), out = new StringBuilder();
      int before = r.nextInt(20);
      for (int n = 0; n < 60; n++) {
        if (n == before) { store.start(first); }
        long step = 1L << r.nextInt(1 + seed); step += r.nextInt(3);
        if (r.nextInt(25) == 0) up = Math.max(0, up - step); else up += step;
        down += r.nextInt((int) step + 1);
        OffsetSync one = new OffsetSync(tp, up, down);
        if (n == 0 && first) store.initializationMustReadToEnd = true; if (n == 0 && !first) store.initializationMustReadToEnd = false;
        store.handleRecord(new ConsumerRecord<>("t", 0, n, one.recordKey(), one.recordValue()));
        in.append(up).append(':').append(down).append(' ');
      }
      for (int n = 0; n < 40; n++) { long u = (long) (r.nextDouble() * up * 1.2); OptionalLong t = store.translateDownstream("g", tp, u); out.append(u).append(':').append(t.isPresent() ? t.getAsLong() : "none").append(' '); }
      System.out.println("store " + first + " " + before + " | " + in + "| " + out);
    }
    for (int lag : new int[]{0, 1, 100}) {
      OffsetSyncWriter.PartitionState st = new OffsetSyncWriter.PartitionState(lag);
      Random r = new Random(lag);
      StringBuilder b = new StringBuilder(), o = new StringBuilder();
      long up = 5, down = 2;
      for (int n = 0; n < 500; n++) {
        if (r.nextInt(60) == 0) up += 3; if (r.nextInt(80) == 0) down += 2; if (r.nextInt(150) == 0) down -= Math.min(down, 20);
        b.append(up).append(':').append(down).append(' ');
        if (st.update(up, down)) { o.append(up).append(':').append(down).append(' '); st.reset(); }
        up++; down++;
      }
      System.out.println("writer " + lag + " | " + b + "| " + o);
    }
  }
}
