import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { Copy } from "shared/ui.tsx";
import { Badge, formatBytes, formatNumber, LiveTitle, Shown, Table, Time } from "../parts.tsx";
import { Runbook } from "../runbooks.tsx";

function Key({ name }: { name: string }) {
  return (
    <>
      <code>{name}</code> <Copy text={name} />
    </>
  );
}

/** The hottest and the largest keys of Redis. */
export function Keys() {
  const keys = useRepeated((signal) => plaza.ops.getKeys({ signal, ...ONCE }));
  return (
    <>
      <LiveTitle text="Keys of Redis" live={keys} />
      <Shown live={keys}>
        {({ hot, large, oversized, scanned, scanned_at }) => (
          <>
            <h2 class="section">Hot in the last five minutes</h2>
            <Table
              label="Hot keys"
              head={["Key", "Commands a second", "From memory", "From replicas"]}
              empty="No key is hot."
              texts={hot.map(({ key }) => key)}
              rows={hot.map((key) => [
                <Key name={key.key} />,
                key.commands_per_s.toFixed(1),
                key.from_memory_per_s.toFixed(1),
                key.from_replicas_per_s.toFixed(1),
              ])}
            />
            <h2 class="section">
              Large {oversized > 0 && <Badge tone="bad">{formatNumber(oversized)} oversized</Badge>}
            </h2>
            {oversized > 0 && <Runbook name="redis-keys" />}
            <p class="fine">
              {scanned_at === null ? (
                "No scan is complete yet."
              ) : (
                <>
                  {formatNumber(scanned)} keys, scanned <Time at={scanned_at} />
                </>
              )}
            </p>
            <Table
              label="Large keys"
              head={["Key", "Type", "Memory", "Members", "Limit"]}
              empty="No key was measured."
              texts={large.map(({ key, type }) => `${key} ${type}`)}
              rows={large.map((key) => [
                <Key name={key.key} />,
                key.type,
                formatBytes(key.bytes),
                formatNumber(key.members),
                key.oversized ? (
                  <Badge tone={key.expected ? "plain" : "bad"}>{key.expected ? "large by design" : "exceeded"}</Badge>
                ) : (
                  "kept"
                ),
              ])}
            />
          </>
        )}
      </Shown>
    </>
  );
}
