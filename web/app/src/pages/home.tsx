import { usePages, useRead, useSession } from "shared/hooks.ts";
import { LanguageChoice } from "shared/language-choice.tsx";
import { Empty, List, Problem, Skeleton, Title } from "shared/ui.tsx";
import { News } from "../news.tsx";
import { UserLink } from "../people.tsx";
import { PostCard, readPopular } from "../posts.tsx";
import { translatePushes } from "../push.tsx";
import { FollowButton } from "../reactions.tsx";
import { t } from "../texts.ts";
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
      <Title text={t.home.feed} />
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
      <Empty icon="home" title={t.home.empty}>
        <p>{t.home.emptyText}</p>
      </Empty>
      <h2 class="section">{t.home.people}</h2>
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
        <Title text={t.home.title}>
          {t.home.claim[0]}
          <br />
          {t.home.claim[1]}
        </Title>
        <p>{t.home.text}</p>
        <a class="button primary" href="#/sign-in">
          {t.home.signIn}
        </a>
        <LanguageChoice after={translatePushes} />
      </section>
      <h2 class="section">{t.home.most}</h2>
      <List of={posts} empty={<Empty icon="star" title={t.home.none} />}>
        {(post) => <PostCard post={post} />}
      </List>
    </>
  );
}
