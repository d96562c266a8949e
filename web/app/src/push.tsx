/** Push messages to this browser, and what is pushed to all browsers of the user. */
import type { Schemas } from "plaza-client";
import { useEffect, useState } from "preact/hooks";
import { useRead } from "shared/hooks.ts";
import { chosenLanguage, wordOf } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { withSession } from "shared/session.ts";
import { say, sayRefusal } from "shared/toast.tsx";
import { Problem } from "shared/ui.tsx";
import { t } from "./texts.ts";

type Preference = Schemas["PushPreferenceResponse"];

const STORED = "plaza-push";

const isPossible = () => "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

function register(): Promise<ServiceWorkerRegistration> {
  const chosen = chosenLanguage();
  const query = chosen === null ? "" : `?lang=${chosen}`; // a worker cannot read what the page stored
  return navigator.serviceWorker.register(new URL(`push-worker.js${query}`, document.baseURI));
}

async function findSubscription(): Promise<PushSubscription | null> {
  const registration = isPossible() ? await navigator.serviceWorker.getRegistration() : undefined;
  return (await registration?.pushManager.getSubscription()) ?? null;
}

async function subscribe(applicationServerKey: string): Promise<void> {
  const registration = await register();
  await navigator.serviceWorker.ready;
  const options = { userVisibleOnly: true, applicationServerKey };
  const { endpoint, keys } = (await registration.pushManager.subscribe(options)).toJSON();
  const body = { endpoint: `${endpoint}`, keys: { p256dh: `${keys?.p256dh}`, auth: `${keys?.auth}` } };
  const { id } = await withSession(() => plaza.put("/push-subscriptions", { body }));
  localStorage.setItem(STORED, id);
}

/** Lets the pushes to this browser be in the language that the user chose. */
export async function translatePushes(): Promise<void> {
  if (localStorage.getItem(STORED) !== null && isPossible()) await register();
}

/** Ends the pushes to this browser: before a session ends, so that no one else reads them. */
export async function endPushes(): Promise<void> {
  const id = localStorage.getItem(STORED);
  if (id === null) return;
  localStorage.removeItem(STORED);
  await (await findSubscription())?.unsubscribe();
  await plaza.delete("/push-subscriptions/{subscription_id}", { path: { subscription_id: id } });
}

export function PushSettings() {
  const { data, error, reload, set } = useRead("push", (signal) => plaza.get("/users/me/push", { signal }));
  const [isOn, setOn] = useState(false);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    void findSubscription().then((subscription) =>
      setOn(subscription !== null && localStorage.getItem(STORED) !== null),
    );
  }, []);
  if (error !== undefined) return <Problem error={error} retry={reload} />;
  if (data === undefined || data.public_key === null) return null;
  const key = data.public_key;

  const toggle = async () => {
    setBusy(true);
    try {
      await (isOn ? endPushes() : subscribe(key));
      setOn(!isOn);
    } catch (reason) {
      if (Notification.permission === "denied") say(t.push.denied);
      else sayRefusal(reason);
    }
    setBusy(false);
  };
  const change = async ({ kind, channel, on }: Preference) => {
    const body = { preferences: [{ kind, channel, on: !on } as Schemas["PushPreference"]] };
    try {
      set(await withSession(() => plaza.put("/users/me/push", { body })));
    } catch (reason) {
      sayRefusal(reason);
    }
  };
  return (
    <section class="section" aria-labelledby="push">
      <h2 id="push">{t.push.title}</h2>
      {isPossible() ? (
        <button type="button" disabled={isBusy} aria-pressed={isOn} onClick={() => void toggle()}>
          {isOn ? t.push.off : t.push.on}
        </button>
      ) : (
        <p>{t.push.impossible}</p>
      )}
      <fieldset class="choice">
        <legend>{t.push.what}</legend>
        {data.preferences.map((preference) => (
          <label key={preference.kind}>
            <input type="checkbox" checked={preference.on} onChange={() => void change(preference)} />
            {wordOf(t.push.kinds, preference.kind)}
          </label>
        ))}
      </fieldset>
    </section>
  );
}
