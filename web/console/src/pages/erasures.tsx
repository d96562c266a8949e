import { usePages } from "shared/hooks.ts";
import { shared } from "shared/texts.ts";
import { Problem, Skeleton, Title } from "shared/ui.tsx";
import { Badge, Table, Time } from "../parts.tsx";
import { t, word } from "../texts.ts";

/** The erasures of accounts, the newest first. */
export function Erasures() {
  const erasures = usePages("/ops/erasures");
  return (
    <>
      <Title text={t.erasures.title} />
      <Problem error={erasures.error} retry={erasures.reload} />
      {erasures.items === undefined ? (
        erasures.error === undefined && <Skeleton rows={2} />
      ) : (
        <Table
          label={t.erasures.title}
          head={[
            t.erasures.user,
            t.state,
            t.erasures.requested,
            t.erasures.erases,
            t.erasures.erased,
            t.erasures.closed,
          ]}
          empty={t.erasures.none}
          rows={erasures.items.map((erasure) => [
            erasure.user_id,
            <Badge tone={erasure.state === "erased" || erasure.state === "closed" ? "good" : "plain"}>
              {word(erasure.state)}
            </Badge>,
            <Time at={erasure.requested_at} />,
            <Time at={erasure.erases_at} />,
            <Time at={erasure.erased_at} />,
            <Time at={erasure.closed_at} />,
          ])}
        />
      )}
      {erasures.hasMore && (
        <button type="button" class="more" onClick={erasures.more} disabled={erasures.isLoading}>
          {shared.more}
        </button>
      )}
    </>
  );
}
