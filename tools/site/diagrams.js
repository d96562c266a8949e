/**
 * Stands for mermaid until a diagram comes near the window, and loads it then: it is larger than all else of
 * the site. The theme initializes it and asks it to draw each diagram of a page.
 */
(() => {
  const { src } = document.currentScript;
  let options;
  let loaded;

  const load = () => {
    loaded ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL("mermaid.min.js", src).href;
      script.onerror = reject;
      script.onload = () => {
        window.mermaid.initialize(options);
        resolve(window.mermaid);
      };
      document.head.append(script);
    });
    return loaded;
  };

  const comeNear = (text) =>
    new Promise((resolve) => {
      const diagrams = [...document.querySelectorAll("pre.mermaid")].filter((element) => element.textContent === text);
      const observer = new IntersectionObserver(
        (entries) => {
          if (!entries.some((entry) => entry.isIntersecting)) return;
          observer.disconnect();
          resolve();
        },
        { rootMargin: "300px" },
      );
      for (const diagram of diagrams) observer.observe(diagram);
    });

  window.mermaid = {
    initialize(given) {
      options = given;
    },
    async render(id, text) {
      await comeNear(text);
      return (await load()).render(id, text);
    },
  };
})();
