import type { Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { usePages } from "shared/hooks.ts";
import { fill } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { Ago, Empty, List, Title } from "shared/ui.tsx";
import { type Action, Badge, Filter, InApp, Outcome, passes, pathOf, useAction } from "../parts.tsx";
import { t, word } from "../texts.ts";

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
      const type = word(report.target.type);
      return hidden ? t.moderation.hidden(type) : t.moderation.shown(type);
    });
  const resolve = (report: Report, outcome: ReportOutcome) =>
    action.run(async () => {
      await plaza.ops.resolveReport(report.id, { outcome });
      reports.change((items) => items.filter((item) => item.id !== report.id));
      return t.moderation.resolved[outcome](report.id);
    });
  return (
    <>
      <Title
        text={t.moderation.title}
        actions={
          <button type="button" class="small" onClick={reports.reload} disabled={reports.isLoading}>
            {t.moderation.again}
          </button>
        }
      />
      <Outcome of={action} />
      {(reports.items?.length ?? 0) > 0 && (
        <p>
          <Filter label={t.moderation.filter} value={filter} set={setFilter} />
        </p>
      )}
      <List of={shown} empty={<Empty icon="flag" title={t.moderation.none} />}>
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

function User({ id }: { id: string }) {
  return <InApp path={`/users/${id}`}>{t.user(id)}</InApp>;
}

interface ReportProps {
  report: Report;
  action: Action;
  setHidden: (hidden: boolean) => void;
  resolve: (outcome: ReportOutcome) => void;
}

function OneReport({
  report: { id, target, reason, details, reporter_id, created_at, content, url },
  action,
  ...act
}: ReportProps) {
  return (
    <article class="card report" aria-label={t.moderation.report(id)}>
      <header>
        <p>
          <Badge tone="bad">{word(reason)}</Badge>{" "}
          <b>
            {url ? (
              <a href={url} target="_blank" rel="noopener noreferrer">
                {t.target(word(target.type), target.id)}
              </a>
            ) : (
              <InApp path={pathOf(target.type, target.id)}>{t.target(word(target.type), target.id)}</InApp>
            )}
          </b>
        </p>
        <span class="fine">
          {fill(t.moderation.by, {
            user: <User key="user" id={reporter_id} />,
            time: <Ago key="time" at={created_at} />,
          })}
        </span>
      </header>
      {details !== null && <p>{details}</p>}
      {content !== null && (
        <blockquote>
          <p class="fine">
            {fill(t.moderation.author, { user: <User key="user" id={content.author_id} /> })}{" "}
            {content.hidden && <Badge tone="plain">{t.moderation.isHidden}</Badge>}{" "}
            {content.deleted && <Badge tone="plain">{t.moderation.isDeleted}</Badge>}
          </p>
          {content.title !== null && content.title !== "" && <b>{content.title}</b>}
          <p class="body">{content.body}</p>
        </blockquote>
      )}
      <p class="buttons">
        {content !== null && !content.deleted && (
          <button type="button" class="small" onClick={() => act.setHidden(!content.hidden)} disabled={action.isBusy}>
            {content.hidden ? t.show : t.moderation.hide}
          </button>
        )}
        <button type="button" class="small primary" onClick={() => act.resolve("upheld")} disabled={action.isBusy}>
          {t.moderation.uphold}
        </button>
        <button type="button" class="small" onClick={() => act.resolve("dismissed")} disabled={action.isBusy}>
          {t.moderation.dismiss}
        </button>
      </p>
    </article>
  );
}
