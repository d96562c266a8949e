import { usePages } from "shared/hooks.ts";
import { Problem, Skeleton, Title } from "shared/ui.tsx";
import { Badge, Table, Time } from "../parts.tsx";

/** The erasures of accounts, the newest first. */
export function Erasures() {
  const erasures = usePages("/ops/erasures");
  return (
    <>
      <Title text="Erasures" />
      <Problem error={erasures.error} retry={erasures.reload} />
      {erasures.items === undefined ? (
        erasures.error === undefined && <Skeleton rows={2} />
      ) : (
        <Table
          label="Erasures"
          head={["User", "State", "Requested", "Erased", "Closed"]}
          empty="No account was erased."
          rows={erasures.items.map((erasure) => [
            erasure.user_id,
            <Badge tone={erasure.state === "erasing" ? "plain" : "good"}>{erasure.state}</Badge>,
            <Time at={erasure.requested_at} />,
            <Time at={erasure.erased_at} />,
            <Time at={erasure.closed_at} />,
          ])}
        />
      )}
      {erasures.hasMore && (
        <button type="button" class="more" onClick={erasures.more} disabled={erasures.isLoading}>
          Show more
        </button>
      )}
    </>
  );
}
