/** The data of the caller: all of it as a file, and its erasure. */
import { useState } from "preact/hooks";
import { plaza } from "shared/plaza.ts";
import { go } from "shared/router.ts";
import { withSession } from "shared/session.ts";
import { say, sayRefusal } from "shared/toast.tsx";
import { ConfirmButton } from "shared/ui.tsx";
import { endPushes } from "./push.tsx";
import { t } from "./texts.ts";

const PAGE_SIZE = 100;

export function OwnData() {
  const [rows, setRows] = useState<number>();
  const download = async () => {
    setRows(0);
    try {
      const sections: Record<string, unknown[]> = {};
      let count = 0;
      for await (const { section, row } of plaza.items("/users/me/export", { query: { limit: PAGE_SIZE } })) {
        sections[section] = [...(sections[section] ?? []), row];
        count += 1;
        if (count % PAGE_SIZE === 0) setRows(count);
      }
      save("plaza-export.json", JSON.stringify(sections, null, 2));
      say(t.settings.exported(count));
    } catch (error) {
      sayRefusal(error);
    }
    setRows(undefined);
  };
  const erase = async () => {
    try {
      await withSession(async () => {
        await plaza.delete("/users/me");
      });
      await endPushes().catch(() => undefined);
      await plaza.signOut().catch(() => undefined); // the erasure has ended the session
      say(t.settings.erased);
      go("/");
    } catch (error) {
      sayRefusal(error);
    }
  };
  return (
    <section class="section" aria-labelledby="own-data">
      <h2 id="own-data">{t.settings.data}</h2>
      <p>{t.settings.exportText}</p>
      <button type="button" disabled={rows !== undefined} onClick={() => void download()}>
        {rows === undefined ? t.settings.export : t.settings.exporting(rows)}
      </button>
      <p>{t.settings.eraseText}</p>
      <ConfirmButton
        label={t.settings.erase}
        confirm={t.settings.reallyErase}
        text={t.settings.eraseFollows}
        word={t.settings.eraseWord}
        act={() => void erase()}
        class="quiet danger"
      />
    </section>
  );
}

/** Lets the browser store a text as a file. */
function save(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url));
}
