import type { Schemas } from "plaza-client";
import { useEffect, useState } from "preact/hooks";
import { useForm, usePages, useRead } from "shared/hooks.ts";
import { formatDistance, formatPrice } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { replaceQuery } from "shared/router.ts";
import { say } from "shared/toast.tsx";
import { Empty, Field, Icon, List, Problem, Title } from "shared/ui.tsx";
import { t } from "../texts.ts";

type Nearby = Schemas["NearbyShopResponse"];
interface Place {
  x: string;
  y: string;
}

const TOWNS: Record<keyof typeof t.shops.towns, Place> = {
  Berlin: { x: "13.405", y: "52.52" },
  Paris: { x: "2.3522", y: "48.8566" },
  Shanghai: { x: "121.4737", y: "31.2304" },
};
const RADII = ["500", "1000", "2000", "5000", "20000"];
const METRES_PER_DEGREE = 111_320;
const MAP = 320;

/** Shops around a place, which is in the URL. */
export function Shops({ query }: { query: URLSearchParams }) {
  const { x, y } = { ...TOWNS.Berlin, ...Object.fromEntries(query) } as Place;
  const radius = query.get("radius") ?? "2000";
  const type = query.get("type") ?? "";
  const show = (change: Record<string, string>) => replaceQuery("/shops", { x, y, radius, type, ...change });
  const { data: types } = useRead("shop types", (signal) => plaza.get("/shop-types", { signal }));
  const numbers = { x: Number(x), y: Number(y), radius: Number(radius) };
  const shops = usePages("/shops", { query: { ...numbers, limit: 50, type: type === "" ? undefined : type } });
  return (
    <>
      <Title
        text={t.shops.title}
        actions={
          <a class="button small" href="#/search">
            <Icon name="search" />
            {t.shops.byName}
          </a>
        }
      />
      <Choice x={x} y={y} show={show} />
      <Plan place={numbers} shops={shops.items ?? []} move={(to) => show({ x: String(to.x), y: String(to.y) })} />
      <div class="filters">
        <label for="radius">{t.shops.within}</label>
        <select id="radius" value={radius} onChange={(event) => show({ radius: event.currentTarget.value })}>
          {RADII.map((radius) => (
            <option key={radius} value={radius}>
              {formatDistance(Number(radius))}
            </option>
          ))}
        </select>
        <label for="type">{t.shops.type}</label>
        <select id="type" value={type} onChange={(event) => show({ type: event.currentTarget.value })}>
          <option value="">{t.shops.all}</option>
          {types?.items.map((type) => (
            <option key={type.id} value={type.id}>
              {type.name}
            </option>
          ))}
        </select>
      </div>
      <List
        of={shops}
        empty={
          <Empty icon="pin" title={t.shops.none}>
            <p>{t.shops.noneText}</p>
          </Empty>
        }
      >
        {(shop) => <ShopRow shop={shop} />}
      </List>
    </>
  );
}

/** A shop in a list; with its distance where the list is of a place. */
export function ShopRow({ shop }: { shop: Nearby | Schemas["ShopResponse"] }) {
  return (
    <a class="card shop" href={`#/shops/${shop.id}`}>
      <span>
        <b>{shop.name}</b>
        <small>{[shop.area, shop.open_hours].filter(Boolean).join(" · ")}</small>
      </span>
      <span class="right">
        {"distance_m" in shop && formatDistance(shop.distance_m)}
        {shop.avg_price_cents !== null && (
          <small>{t.shop.about(formatPrice({ cents: shop.avg_price_cents, currency: shop.currency }))}</small>
        )}
      </span>
    </a>
  );
}

/** The place: a town, the device's position, or coordinates. */
function Choice({ x, y, show }: Place & { show: (place: Partial<Place>) => void }) {
  const [isLocating, setLocating] = useState(false);
  const form = useForm(async (data) => {
    const place = { x: String(data.get("x")), y: String(data.get("y")) };
    await plaza.get("/shops", {
      query: { x: place.x as unknown as number, y: place.y as unknown as number, limit: 1 },
    });
    show(place);
  });
  const locate = () => {
    setLocating(true);
    navigator.geolocation.getCurrentPosition(
      ({ coords }) => {
        setLocating(false);
        show({ x: coords.longitude.toFixed(5), y: coords.latitude.toFixed(5) });
      },
      () => {
        setLocating(false);
        say(t.shops.noPosition);
      },
    );
  };
  return (
    <section class="choices" aria-label={t.shops.where}>
      {Object.entries(TOWNS).map(([name, place]) => (
        <button
          key={name}
          type="button"
          class="small"
          aria-pressed={place.x === x && place.y === y}
          onClick={() => show(place)}
        >
          {t.shops.towns[name as keyof typeof TOWNS]}
        </button>
      ))}
      <button type="button" class="small" onClick={locate} disabled={isLocating}>
        {isLocating ? t.shops.locating : t.shops.mine}
      </button>
      <details>
        <summary>{t.shops.coordinates}</summary>
        <form class="inline" noValidate onSubmit={form.submit} key={`${x} ${y}`}>
          <Field form={form} name="y" label={t.shops.latitude} inputMode="decimal" defaultValue={y} />
          <Field form={form} name="x" label={t.shops.longitude} inputMode="decimal" defaultValue={x} />
          <button type="submit" class="small primary">
            {t.shops.show}
          </button>
          <Problem error={form.problem} />
        </form>
      </details>
    </section>
  );
}

interface PlanProps {
  place: { x: number; y: number; radius: number };
  shops: Nearby[];
  move: (to: { x: number; y: number }) => void;
}

/**
 * Shops on a plan around the place; a click moves it. It repeats the list below for pointers, so
 * it is hidden from screen readers.
 */
function Plan({ place, shops, move }: PlanProps) {
  const [hovered, setHovered] = useState<Nearby>();
  useEffect(() => setHovered(undefined), [shops]);
  const perDegree = { x: METRES_PER_DEGREE * Math.cos((place.y * Math.PI) / 180), y: METRES_PER_DEGREE };
  const scale = MAP / 2 / (place.radius * 1.1);
  const at = ({ x, y }: { x: number; y: number }) => ({
    cx: (x - place.x) * perDegree.x * scale,
    cy: -(y - place.y) * perDegree.y * scale,
  });
  const click = (event: MouseEvent) => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    const metres = (offset: number, size: number) => (offset / size - 0.5) * (MAP / scale);
    move({
      x: Number((place.x + metres(event.clientX - box.left, box.width) / perDegree.x).toFixed(5)),
      y: Number((place.y - metres(event.clientY - box.top, box.height) / perDegree.y).toFixed(5)),
    });
  };
  return (
    <div class="map" aria-hidden="true">
      <svg viewBox={`${-MAP / 2} ${-MAP / 2} ${MAP} ${MAP}`} onClick={click}>
        {[1, 2 / 3, 1 / 3].map((part) => (
          <circle key={part} class="ring" r={place.radius * scale * part} />
        ))}
        <path class="centre" d="M-7 0H7M0-7V7" />
        {shops.map(
          (shop) =>
            shop.place && (
              <circle
                key={shop.id}
                class="dot"
                r={hovered === shop ? 8 : 6}
                {...at(shop.place)}
                onMouseEnter={() => setHovered(shop)}
                onMouseLeave={() => setHovered(undefined)}
                onClick={(event: MouseEvent) => {
                  event.stopPropagation();
                  location.hash = `/shops/${shop.id}`;
                }}
              />
            ),
        )}
      </svg>
      <p class="fine">
        <Icon name="pin" />
        {hovered
          ? `${hovered.name}, ${formatDistance(hovered.distance_m)}`
          : t.shops.around(formatDistance(place.radius))}
      </p>
    </div>
  );
}
