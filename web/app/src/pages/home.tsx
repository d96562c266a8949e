import { usePages, useRead, useSession } from "shared/hooks.ts";
import { Empty, List, Problem, Skeleton, Title } from "shared/ui.tsx";
import { News } from "../news.tsx";
import { UserLink } from "../people.tsx";
import { PostCard, readPopular } from "../posts.tsx";
import { FollowButton } from "../reactions.tsx";
import { useWritten } from "../written.ts";

/** The feed of the caller; for anonymous callers what others like most. */
export function Home() {
  return useSession() === null ? <Welcome /> : <Feed />;
}

function Feed() {
  const read = usePages("/feed");
  const posts = useWritten(read);
  return (
    <>
      <Title text="Feed" />
      <News of={read} />
      <List of={posts} empty={<Suggestions />}>
        {(post) => <PostCard post={post} />}
      </List>
    </>
  );
}

function Suggestions() {
  const session = useSession();
  const { data: posts, error, reload } = useRead("popular", readPopular);
  const authors = new Map(posts?.map((post) => [post.author.id, post.author]));
  authors.delete(session?.user.id ?? "");
  return (
    <>
      <Empty icon="home" title="Your feed is empty">
        <p>Follow people, and their posts appear here.</p>
      </Empty>
      <h2 class="section">People to follow</h2>
      {posts === undefined && error === undefined && <Skeleton />}
      <Problem error={error} retry={reload} />
      <ul class="list people">
        {[...authors.values()].slice(0, 8).map((user) => (
          <li key={user.id}>
            <UserLink user={user} />
            <FollowButton user={user} name={user.nickname} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Welcome() {
  const posts = usePages("/posts/ranking", { query: { window: "all", limit: 10 } });
  return (
    <>
      <section class="welcome">
        <Title text="Every like counts once">
          Every like
          <br />
          counts once.
        </Title>
        <p>Follow people, like what they write, find shops nearby, and be quick at a flash sale.</p>
        <a class="button primary" href="#/sign-in">
          Sign in with your phone
        </a>
      </section>
      <h2 class="section">Most liked</h2>
      <List of={posts} empty={<Empty icon="star" title="There are no posts yet" />}>
        {(post) => <PostCard post={post} />}
      </List>
    </>
  );
}
