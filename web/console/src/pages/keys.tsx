import { fill, formatBytes, formatNumber } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { Copy } from "shared/ui.tsx";
import { Badge, LiveTitle, Shown, Table, Time } from "../parts.tsx";
import { Runbook } from "../runbooks.tsx";
import { t } from "../texts.ts";

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
      <LiveTitle text={t.keys.title} live={keys} />
      <Shown live={keys}>
        {({ hot, large, oversized, scanned, scanned_at }) => (
          <>
            <h2 class="section">{t.keys.hotTitle}</h2>
            <Table
              label={t.keys.hot}
              head={[t.keys.key, t.keys.commands, t.keys.memory, t.keys.replicas]}
              empty={t.keys.noHot}
              texts={hot.map(({ key }) => key)}
              rows={hot.map((key) => [
                <Key name={key.key} />,
                formatNumber(key.commands_per_s, 1),
                formatNumber(key.from_memory_per_s, 1),
                formatNumber(key.from_replicas_per_s, 1),
              ])}
            />
            <h2 class="section">
              {t.keys.largeTitle} {oversized > 0 && <Badge tone="bad">{t.keys.oversized(oversized)}</Badge>}
            </h2>
            {oversized > 0 && <Runbook name="redis-keys" />}
            <p class="fine">
              {scanned_at === null
                ? t.keys.noScan
                : fill(t.keys.scanned(scanned), { time: <Time key="time" at={scanned_at} /> })}
            </p>
            <Table
              label={t.keys.large}
              head={[t.keys.key, t.keys.type, t.keys.size, t.keys.members, t.keys.limit]}
              empty={t.keys.noLarge}
              texts={large.map(({ key, type }) => `${key} ${type}`)}
              rows={large.map((key) => [
                <Key name={key.key} />,
                key.type,
                formatBytes(key.bytes),
                formatNumber(key.members),
                key.oversized ? (
                  <Badge tone={key.expected ? "plain" : "bad"}>
                    {key.expected ? t.keys.byDesign : t.keys.exceeded}
                  </Badge>
                ) : (
                  t.keys.kept
                ),
              ])}
            />
          </>
        )}
      </Shown>
    </>
  );
}
