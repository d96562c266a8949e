/** The texts of notifications, in the language of the device: English, Chinese or Russian. */
import type { Notification } from "plaza-client";

type Kind = Notification["kind"];
type Subject = Notification["subject"]["type"];

interface Sentence {
  kind: Kind;
  subject: Subject;
  /** The beginning of the text; empty for a follow, and for a text without one. */
  title: string;
  names: string[];
  /** How many there are besides `names`. */
  others: number;
  total: number;
}

interface Language {
  sentence: (of: Sentence) => string;
  fresh: (count: number) => string;
  title: string;
  /** The title in the bar. */
  short: string;
  markAll: string;
  showNew: string;
  empty: string;
  unread: (count: number) => string;
}

const number = (locale: string) => {
  const format = new Intl.NumberFormat(locale);
  return (value: number) => format.format(value);
};

const EN = number("en");
const ZH = number("zh");
const RU = number("ru");
const ENGLISH: Record<Subject, string> = { post: "post", comment: "comment", review: "review", user: "profile" };
const CHINESE: Record<Subject, string> = { post: "帖子", comment: "评论", review: "点评", user: "主页" };
const RUSSIAN: Record<Subject, [like: string, comments: string]> = {
  post: ["Нравится ваша запись", "Комментарии к записи"],
  comment: ["Нравится ваш комментарий", "Ответы на комментарий"],
  review: ["Нравится ваш отзыв", "Комментарии к отзыву"],
  user: ["Нравится ваш профиль", "Комментарии к профилю"],
};

function joinEnglish({ names, others }: Sentence): string {
  if (names.length === 0) return `${EN(others)} ${others === 1 ? "person" : "people"}`;
  const rest = others > 0 ? [`${EN(others)} ${others === 1 ? "other" : "others"}`] : [];
  const all = [...names, ...rest];
  return all.length === 1 ? `${all[0]}` : `${all.slice(0, -1).join(", ")} and ${all[all.length - 1]}`;
}

const LANGUAGES: Record<"en" | "zh" | "ru", Language> = {
  en: {
    sentence: (of) => {
      const about = `your ${ENGLISH[of.subject]}${of.title && ` “${of.title}”`}`;
      if (of.kind === "follow") return `${joinEnglish(of)} ${of.total === 1 ? "follows" : "follow"} you`;
      if (of.kind === "like") return `${joinEnglish(of)} liked ${about}`;
      const by = of.names.length > 0 ? `, the latest by ${of.names.join(", ")}` : "";
      return `${EN(of.total)} ${of.total === 1 ? "comment" : "comments"} on ${about}${by}`;
    },
    fresh: (count) => `${EN(count)} new`,
    title: "Notifications",
    short: "Alerts",
    markAll: "Mark all as read",
    showNew: "Show what is new",
    empty: "Likes, comments and followers appear here.",
    unread: (count) => `${EN(count)} unread`,
  },
  zh: {
    sentence: (of) => {
      const about = `你的${CHINESE[of.subject]}${of.title && `“${of.title}”`}`;
      const names = of.names.join("、");
      const who = of.others > 0 ? `${names}${names && "等 "}${ZH(of.total)} 人` : names;
      if (of.kind === "follow") return `${who}关注了你`;
      if (of.kind === "like") return `${who}赞了${about}`;
      return `${about}有 ${ZH(of.total)} 条评论${names && `，最新来自${names}`}`;
    },
    fresh: (count) => `${ZH(count)} 条新`,
    title: "通知",
    short: "通知",
    markAll: "全部标为已读",
    showNew: "查看新通知",
    empty: "赞、评论和关注会显示在这里。",
    unread: (count) => `${ZH(count)} 条未读`,
  },
  ru: {
    sentence: (of) => {
      const [like, comments] = RUSSIAN[of.subject];
      const title = of.title && ` «${of.title}»`;
      const rest = of.others > 0 ? [`${of.names.length > 0 ? "ещё " : ""}${RU(of.others)}`] : [];
      const who = [...of.names, ...rest].join(", ");
      if (of.kind === "follow") return `Ваши подписчики: ${who}`;
      if (of.kind === "like") return `${like}${title}: ${who}`;
      return `${comments}${title}: ${RU(of.total)}${of.names.length > 0 ? ` (${of.names.join(", ")})` : ""}`;
    },
    fresh: (count) => `новых: ${RU(count)}`,
    title: "Уведомления",
    short: "События",
    markAll: "Отметить всё прочитанным",
    showNew: "Показать новое",
    empty: "Здесь появятся отметки «нравится», комментарии и подписчики.",
    unread: (count) => `непрочитанных: ${RU(count)}`,
  },
};

/** Returns the texts of the first of `languages` that there are texts in; English without one. */
export function textsOf(languages: readonly string[]): Language & { lang: string } {
  for (const language of languages) {
    const name = language.slice(0, 2).toLowerCase();
    if (name === "en" || name === "zh" || name === "ru") return { ...LANGUAGES[name], lang: name };
  }
  return { ...LANGUAGES.en, lang: "en" };
}

export function describe({ kind, subject, total, actors }: Notification, language: Language): string {
  const names = actors.map((actor) => actor.nickname);
  const others = Math.max(0, total - names.length);
  return language.sentence({ kind, subject: subject.type, title: subject.text ?? "", names, others, total });
}
