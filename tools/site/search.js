/**
 * Added to the search of the site by tools/site/search.py. It drops the small words of a question, because the search
 * wants all words in one section, and sorts pages for readers who know Plaza behind pages for newcomers.
 */
(() => {
  const SMALL = new Set(
    `a about am an and another any are as at be by can could do does for from has have how i if in into is it its me my
    of on or our own plaza please should so that the their there this to use using was we what when where which who why
    will with would without you your`.split(/\s+/),
  );
  // Locations are addresses: the page resolves them before it sends them.
  const LATER = /\/(runbooks\/|files\/|operations|contributing|glossary|failures|mutants|powertools|how-long|alarms)/;
  const REASONS = /\/(scaling|limits|architecture)/;
  const LAST = /\/(decisions\/|changelog|retry-queue)/;
  const receive = self.onmessage;
  let ranks = [];

  const rank = ({ location }) => {
    if (LAST.test(location)) return 2;
    return LATER.test(location) || REASONS.test(location) ? 1 : 0;
  };
  const shorten = (question) => {
    const words = question.replace(/[?!.,;]+(?=\s|$)/g, "").split(/\s+/);
    return words.filter((word) => !SMALL.has(word.toLowerCase())).join(" ") || question;
  };

  self.sortResults = (items) => items.sort((one, other) => ranks[one.id] - ranks[other.id]);
  self.onmessage = (event) => {
    const { type, data } = event.data;
    if (type === 0) ranks = data.items.map(rank);
    if (typeof data?.input === "string") receive({ data: { type, data: { ...data, input: shorten(data.input) } } });
    else receive(event);
  };
})();
