/** The language of the page: the device's, or one that the user chooses. */
import { useId, useState } from "preact/hooks";
import { chooseLanguage, chosenLanguage, LANGUAGES, type Language } from "shared/language.ts";
import { translatePushes } from "./push.tsx";
import { t } from "./texts.ts";

export function LanguageChoice() {
  const id = useId();
  const [chosen, setChosen] = useState(chosenLanguage);
  const choose = (value: string) => {
    const next = value === "" ? null : (value as Language);
    setChosen(next);
    void chooseLanguage(next).then(translatePushes);
  };
  return (
    <p class="language">
      <label for={id}>{t.settings.language}</label>
      <select id={id} value={chosen ?? ""} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">{t.settings.device}</option>
        {Object.entries(LANGUAGES).map(([name, own]) => (
          <option key={name} value={name} lang={name}>
            {own}
          </option>
        ))}
      </select>
    </p>
  );
}
