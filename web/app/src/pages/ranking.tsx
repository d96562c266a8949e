import { usePages } from "shared/hooks.ts";
import { Count, Empty, List, Tabs, Title } from "shared/ui.tsx";
import { PostCard } from "../posts.tsx";
import { t } from "../texts.ts";

const WINDOWS = ["hot", "day", "week", "all"] as const;
type Window = (typeof WINDOWS)[number];

export function Ranking({ window: asked }: { window: string | null }) {
  const value = WINDOWS.find((window) => window === asked) ?? WINDOWS[0];
  const tabs = WINDOWS.map((window) => ({ label: t.ranking[window], value: window }));
  return (
    <>
      <Title text={t.ranking.title} />
      <Tabs label={t.ranking.time} tabs={tabs} value={value} href={(item) => `#/ranking?window=${item}`} />
      <Places window={value} key={value} />
    </>
  );
}

function Places({ window }: { window: Window }) {
  const posts = usePages("/posts/ranking", { query: { window } });
  const ranks = new Map(posts.items?.map((post, index) => [post, index + 1]));
  return (
    <List
      of={posts}
      empty={
        <Empty icon="star" title={t.ranking.none}>
          <p>{t.ranking.noneText}</p>
        </Empty>
      }
    >
      {(post) => (
        <PostCard
          post={post}
          rank={
            <p class="rank">
              <span class="hidden">{t.ranking.rank} </span>
              <Count of={ranks.get(post) ?? null} />
            </p>
          }
        />
      )}
    </List>
  );
}
