/** The language of the page: the device's, or one that the user chooses. */
import { useId, useState } from "preact/hooks";
import { chooseLanguage, chosenLanguage, LANGUAGES, type Language } from "./language.ts";
import { shared } from "./texts.ts";

/** `after`: what else changes with the language. */
export function LanguageChoice({ after }: { after?: () => void }) {
  const id = useId();
  const [chosen, setChosen] = useState(chosenLanguage);
  const choose = (value: string) => {
    const next = value === "" ? null : (value as Language);
    setChosen(next);
    void chooseLanguage(next).then(after);
  };
  return (
    <p class="language">
      <label for={id}>{shared.language}</label>
      <select id={id} value={chosen ?? ""} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">{shared.deviceLanguage}</option>
        {Object.entries(LANGUAGES).map(([name, own]) => (
          <option key={name} value={name} lang={name}>
            {own}
          </option>
        ))}
      </select>
    </p>
  );
}
