/**
 * `find-strings.ts FOLDER...`: prints what a reader sees that is written into the components instead of
 * into a catalogue, and how dates and numbers are formatted outside of language.ts.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

/** Attributes whose values no reader sees. */
const TECHNICAL =
  /^(class|id|key|href|src|name|type|role|for|lang|rel|method|scope|icon|autocomplete|inputMode|loading|viewBox|d|of|in|path|tabs|value|data-.*|aria-(live|current|labelledby|describedby|hidden|invalid|pressed|haspopup|controls|expanded))$/;
/** Functions whose arguments no reader sees. */
const TECHNICAL_CALLS =
  /^(useRead|useDraft|usePages|match|get|post|put|patch|delete|querySelector|querySelectorAll|getElementById|matches|addEventListener|removeEventListener|Error|RegExp|URL|URLSearchParams|matchMedia|setAttribute|startsWith|replace|split|has|test|error|fill|go|replaceQuery|formatTime|keep|Function|fetch)$/;
/** What has the same name in all languages. */
const NAMES = /Plaza|Redis|MySQL/g;
/** A sentence, or a word with a capital letter or of another script. */
const WORDS = /\p{L}[\p{L}'’]*[.,!?]? +\p{L}|^\p{Lu}\p{Ll}+|[^\0-\x7f]*\p{L}{2,}[^\0-\x7f]/u;

function nameOf(call: ts.CallExpression | ts.NewExpression): string {
  const { expression } = call;
  return ts.isPropertyAccessExpression(expression) ? expression.name.text : expression.getText();
}

/** Whether a text is seen by readers, judged by what contains it. */
function isShown(node: ts.Node): boolean {
  for (let at: ts.Node = node; at.parent !== undefined; at = at.parent) {
    const { parent } = at;
    if (ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent) || ts.isTypeNode(parent)) return false;
    if (ts.isJsxAttribute(parent)) return !TECHNICAL.test(parent.name.getText());
    if (ts.isElementAccessExpression(parent) && parent.argumentExpression === at) return false;
    if (ts.isPropertyAssignment(parent) && parent.name === at) return false;
    if (ts.isCallExpression(parent) || ts.isNewExpression(parent)) return !TECHNICAL_CALLS.test(nameOf(parent));
    if (ts.isBinaryExpression(parent) && parent.operatorToken.kind === ts.SyntaxKind.InKeyword) return false;
    if (ts.isJsxElement(parent) || ts.isBlock(parent)) return true;
  }
  return true;
}

function textOf(node: ts.Node): string {
  if (!(ts.isJsxText(node) || ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node))) return "";
  const { parent } = node;
  if (ts.isJsxElement(parent) && parent.openingElement.tagName.getText() === "code") return ""; // as one types it
  return node.text.replace(NAMES, "").trim();
}

let reports = 0;
function report(file: string, source: ts.SourceFile, node: ts.Node, what: string): void {
  const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
  reports += 1;
  console.log(`${file}:${line + 1}: ${what}`);
}

function check(file: string): void {
  const source = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
  const visit = (node: ts.Node): void => {
    const text = textOf(node);
    if (ts.isJsxText(node) ? /\p{L}/u.test(text) : WORDS.test(text) && isShown(node)) report(file, source, node, text);
    const isFormat = ts.isPropertyAccessExpression(node) && /^(Intl$|toLocale)/.test(node.expression.getText());
    const isLocale = ts.isPropertyAccessExpression(node) && node.name.text.startsWith("toLocale");
    if (isFormat || isLocale) report(file, source, node, node.getText());
    node.forEachChild(visit);
  };
  visit(source);
}

for (const folder of process.argv.slice(2)) {
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const isCatalogue = /(^|[/\\])texts[/\\]/.test(name) || /^(language|find-strings|size|vite)\.ts$/.test(name);
    if (/\.tsx?$/.test(name) && !isCatalogue) check(join(folder, name));
  }
}
process.exitCode = reports > 0 ? 1 : 0;
