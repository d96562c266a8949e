/** What a push says, in the language of the device: English, Chinese or Russian. */

export interface Push {
  /** Pushes with the same topic are about the same subject: the last one is shown. */
  topic: string;
  user_id: string;
  kind: string;
  subject: { type: string; id: string; text: string | null; url?: string | null };
  fresh: number;
  /** Of what was decided: success, failed, offered, upheld, dismissed. */
  what: string | null;
  unread: number;
  at: string;
}

type Say = (push: Push, title: string) => string;

const count = (n: number, one: string, many: string) => `${n} new ${n === 1 ? one : many}`;
const ENGLISH: Record<string, Say> = {
  like: ({ fresh }, title) => `${count(fresh, "like", "likes")} on ${title || "your text"}`,
  comment: ({ fresh }, title) => `${count(fresh, "comment", "comments")} on ${title || "your post"}`,
  follow: ({ fresh }) => count(fresh, "follower", "followers"),
  order: ({ what }, title) => `Your order${title && ` of ${title}`} ${what === "success" ? "succeeded" : "failed"}`,
  waitlist: (_, title) => `A unit${title && ` of ${title}`} is yours if you order it now`,
  report: ({ what }) => (what === "upheld" ? "Your report was upheld" : "Your report was dismissed"),
};
const CHINESE: Record<string, Say> = {
  like: ({ fresh }, title) => `${title || "你的内容"}有 ${fresh} 个新赞`,
  comment: ({ fresh }, title) => `${title || "你的帖子"}有 ${fresh} 条新评论`,
  follow: ({ fresh }) => `${fresh} 位新关注者`,
  order: ({ what }, title) => `${title || "你"}的订单${what === "success" ? "成功" : "失败"}`,
  waitlist: (_, title) => `${title || "候补商品"}有货了，请尽快下单`,
  report: ({ what }) => (what === "upheld" ? "你的举报已被采纳" : "你的举报未被采纳"),
};
const RUSSIAN: Record<string, Say> = {
  like: ({ fresh }, title) => `Новых отметок «нравится»: ${fresh}${title && ` — ${title}`}`,
  comment: ({ fresh }, title) => `Новых комментариев: ${fresh}${title && ` — ${title}`}`,
  follow: ({ fresh }) => `Новых подписчиков: ${fresh}`,
  order: ({ what }, title) => `Заказ${title && ` ${title}`} ${what === "success" ? "подтверждён" : "не выполнен"}`,
  waitlist: (_, title) => `Очередь подошла${title && `: ${title}`}. Закажите сейчас`,
  report: ({ what }) => (what === "upheld" ? "Ваша жалоба принята" : "Ваша жалоба отклонена"),
};
const QUOTES: Record<string, [string, string]> = { en: ["“", "”"], zh: ["“", "”"], ru: ["«", "»"] };
const LANGUAGES: Record<string, Record<string, Say>> = { en: ENGLISH, zh: CHINESE, ru: RUSSIAN };

/** Returns what a push says, in the first of `languages` that there are texts in, and that language. */
export function say(push: Push, languages: readonly string[]): { text: string; lang: string } {
  const lang = languages.map((name) => name.slice(0, 2).toLowerCase()).find((name) => name in LANGUAGES) ?? "en";
  const [open, close] = QUOTES[lang] ?? ["", ""];
  const title = push.subject.text ? `${open}${push.subject.text}${close}` : "";
  return { text: LANGUAGES[lang]?.[push.kind]?.(push, title) ?? "Plaza", lang };
}

/** Returns the page of what a push is about. */
export function hrefOf({ kind, subject, user_id }: Push): string {
  if (kind === "order") return `#/users/${user_id}?tab=orders`;
  return subject.type === "post" ? `#/posts/${subject.id}` : (subject.url ?? "#/notifications");
}
