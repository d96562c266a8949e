import { start } from "shared/start.tsx";
import { App } from "./app.tsx";
import { loadTexts } from "./texts.ts";
import "shared/style.css";
import "./style.css";

void start(App, loadTexts);
