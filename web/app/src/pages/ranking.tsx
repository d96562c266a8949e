import { usePages } from "shared/hooks.ts";
import { Empty, List, Tabs, Title } from "shared/ui.tsx";
import { PostCard } from "../posts.tsx";

const WINDOWS = [
  { label: "Hot", value: "hot" },
  { label: "Today", value: "day" },
  { label: "Week", value: "week" },
  { label: "All time", value: "all" },
] as const;

export function Ranking({ window: asked }: { window: string | null }) {
  const { value } = WINDOWS.find((item) => item.value === asked) ?? WINDOWS[0];
  return (
    <>
      <Title text="Ranking" />
      <Tabs label="Time" tabs={[...WINDOWS]} value={value} href={(item) => `#/ranking?window=${item}`} />
      <Places window={value} key={value} />
    </>
  );
}

function Places({ window }: { window: (typeof WINDOWS)[number]["value"] }) {
  const posts = usePages("/posts/ranking", { query: { window } });
  const ranks = new Map(posts.items?.map((post, index) => [post, index + 1]));
  return (
    <List
      of={posts}
      empty={
        <Empty icon="star" title="No likes yet">
          <p>Be the first one to like a post.</p>
        </Empty>
      }
    >
      {(post) => (
        <PostCard
          post={post}
          rank={
            <p class="rank">
              <span class="hidden">Place </span>
              {ranks.get(post)}
            </p>
          }
        />
      )}
    </List>
  );
}
