/** Shops by the beginning of their name, and users by their number: what the API can look up. */
import { useRef } from "preact/hooks";
import { usePages } from "shared/hooks.ts";
import { go, replaceQuery } from "shared/router.ts";
import { Empty, Icon, List, Title } from "shared/ui.tsx";
import { t } from "../texts.ts";
import { ShopRow } from "./shops.tsx";

const USER_ID = /^[1-9]\d{0,18}$/;
/** A pause in typing after which the list is read. */
const PAUSE_MS = 250;

export function Search({ text }: { text: string }) {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const show = (value: string) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => replaceQuery("/search", { name: value.trim() }), PAUSE_MS);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const value = String(new FormData(event.currentTarget as HTMLFormElement).get("name")).trim();
    clearTimeout(timer.current);
    if (USER_ID.test(value)) go(`/users/${value}`);
    else replaceQuery("/search", { name: value });
  };
  return (
    <>
      <Title text={t.search.title} />
      <form class="search" role="search" noValidate onSubmit={submit}>
        <label for="search">{t.search.label}</label>
        <input
          id="search"
          type="search"
          name="name"
          maxLength={200}
          autocomplete="off"
          defaultValue={text}
          onInput={(event) => show(event.currentTarget.value)}
          aria-describedby="search-help"
        />
        <button type="submit" class="primary">
          {t.search.show}
        </button>
        <p class="fine" id="search-help">
          {t.search.help}
        </p>
      </form>
      {USER_ID.test(text) && (
        <a class="card shop" href={`#/users/${text}`}>
          <span>
            <b>{t.search.open(text)}</b>
          </span>
          <Icon name="person" />
        </a>
      )}
      {text === "" ? <Empty icon="search" title={t.search.start} /> : <Results key={text} name={text} />}
    </>
  );
}

function Results({ name }: { name: string }) {
  const shops = usePages("/shops/search", { query: { name, limit: 50 } });
  return (
    <List
      of={shops}
      empty={
        <Empty icon="search" title={t.search.none}>
          <p>{t.search.noneText}</p>
        </Empty>
      }
    >
      {(shop) => <ShopRow shop={shop} />}
    </List>
  );
}
