import type { Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { usePages } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { Ago, Empty, List, Title } from "shared/ui.tsx";
import { type Action, Badge, Filter, InApp, Outcome, passes, useAction } from "../parts.tsx";

type Report = Schemas["OpenReport"];
type ReportOutcome = Schemas["OutcomeRequest"]["outcome"];

/** The open reports: content is hidden or shown, and a report is resolved. */
export function Moderation() {
  const reports = usePages("/ops/reports");
  const action = useAction();
  const [filter, setFilter] = useState("");
  const textOf = ({ target, reason, details, reporter_id, content }: Report) =>
    [target.type, target.id, reason, details, reporter_id, content?.author_id, content?.title, content?.body].join(" ");
  const shown = { ...reports, items: reports.items?.filter((report) => passes(filter, textOf(report))) };
  const setHidden = (report: Report, hidden: boolean) =>
    action.run(async () => {
      await sendHidden(report.target, hidden ? "put" : "delete");
      const isSame = ({ target }: Report) => target.type === report.target.type && target.id === report.target.id;
      reports.change((items) =>
        items.map((item) => (isSame(item) && item.content ? { ...item, content: { ...item.content, hidden } } : item)),
      );
      return `The ${report.target.type} is ${hidden ? "hidden: only its author gets it" : "shown again"}.`;
    });
  const resolve = (report: Report, outcome: ReportOutcome) =>
    action.run(async () => {
      await plaza.ops.resolveReport(report.id, { outcome });
      reports.change((items) => items.filter((item) => item.id !== report.id));
      return `Report ${report.id} is ${outcome}.`;
    });
  return (
    <>
      <Title
        text="Moderation"
        actions={
          <button type="button" class="small" onClick={reports.reload} disabled={reports.isLoading}>
            Read again
          </button>
        }
      />
      <Outcome of={action} />
      {(reports.items?.length ?? 0) > 0 && (
        <p>
          <Filter label="Filter reports" value={filter} set={setFilter} />
        </p>
      )}
      <List of={shown} empty={<Empty icon="flag" title="No open reports" />}>
        {(report) => (
          <OneReport
            report={report}
            action={action}
            setHidden={(hidden) => void setHidden(report, hidden)}
            resolve={(outcome) => void resolve(report, outcome)}
          />
        )}
      </List>
    </>
  );
}

/** Hides content, or shows it again. */
function sendHidden({ type, id }: Report["target"], method: "put" | "delete"): Promise<unknown> {
  if (type === "post") return plaza.send(method, "/ops/posts/{post_id}/hidden", { path: { post_id: id } });
  if (type === "comment") return plaza.send(method, "/ops/comments/{comment_id}/hidden", { path: { comment_id: id } });
  return plaza.send(method, "/ops/reviews/{review_id}/hidden", { path: { review_id: id } });
}

/** Returns the page of the app that shows a target; comments and reviews have none of their own. */
function pathOf({ type, id }: Report["target"]): string | null {
  if (type === "post") return `/posts/${id}`;
  return type === "user" ? `/users/${id}` : null;
}

interface ReportProps {
  report: Report;
  action: Action;
  setHidden: (hidden: boolean) => void;
  resolve: (outcome: ReportOutcome) => void;
}

function OneReport({
  report: { id, target, reason, details, reporter_id, created_at, content },
  action,
  ...act
}: ReportProps) {
  return (
    <article class="card report" aria-label={`Report ${id}`}>
      <header>
        <p>
          <Badge tone="bad">{reason}</Badge>{" "}
          <b>
            <InApp path={pathOf(target)}>
              {target.type} {target.id}
            </InApp>
          </b>
        </p>
        <span class="fine">
          by <InApp path={`/users/${reporter_id}`}>user {reporter_id}</InApp>, <Ago at={created_at} />
        </span>
      </header>
      {details !== null && <p>{details}</p>}
      {content !== null && (
        <blockquote>
          <p class="fine">
            Author: <InApp path={`/users/${content.author_id}`}>user {content.author_id}</InApp>{" "}
            {content.hidden && <Badge tone="plain">hidden</Badge>}{" "}
            {content.deleted && <Badge tone="plain">deleted</Badge>}
          </p>
          {content.title !== null && content.title !== "" && <b>{content.title}</b>}
          <p class="body">{content.body}</p>
        </blockquote>
      )}
      <p class="buttons">
        {content !== null && !content.deleted && (
          <button type="button" class="small" onClick={() => act.setHidden(!content.hidden)} disabled={action.isBusy}>
            {content.hidden ? "Show" : "Hide"}
          </button>
        )}
        <button type="button" class="small primary" onClick={() => act.resolve("upheld")} disabled={action.isBusy}>
          Uphold
        </button>
        <button type="button" class="small" onClick={() => act.resolve("dismissed")} disabled={action.isBusy}>
          Dismiss
        </button>
      </p>
    </article>
  );
}
