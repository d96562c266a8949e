/** Passkeys: what the browser's WebAuthn takes and returns, and what the API does. */

import type { Session } from "plaza-client";
import { ProblemError } from "plaza-client";
import { plaza } from "shared/plaza.ts";
import { UserError } from "shared/ui.tsx";
import { t } from "./texts.ts";

export const HAS_PASSKEYS = typeof PublicKeyCredential === "function";
const ES256 = -7;
const RS256 = -257;

/** The user has closed the dialog of the browser, or its device has no passkey of this page. */
export class NoPasskey extends UserError {}

/** Signs in with a passkey of this page; the device asks which one. */
export async function signInWithPasskey(): Promise<void> {
  const { challenge, rp_id } = await plaza.post("/passkey-challenges", { body: {} });
  const credential = await ask(() =>
    navigator.credentials.get({
      publicKey: { challenge: toBytes(challenge), rpId: rp_id, userVerification: "required" },
    }),
  );
  const { authenticatorData, signature, userHandle, clientDataJSON } =
    credential.response as AuthenticatorAssertionResponse;
  const { token, expires_in, user } = await plaza.post("/auth/sessions", {
    body: {
      passkey: {
        credential_id: toText(credential.rawId),
        client_data: toText(clientDataJSON),
        authenticator_data: toText(authenticatorData),
        signature: toText(signature),
        ...(userHandle && { user_handle: toText(userHandle) }),
      },
    },
  });
  const session: Session = { token, expiresAt: Date.now() + expires_in * 1000, user };
  await plaza.resume(session);
}

/** Makes a passkey on this device, for the user of the code or, without one, of the session. */
export async function enrollPasskey(name: string, code?: string): Promise<void> {
  const given = code === undefined ? {} : { code };
  const { challenge, rp_id, user } = await plaza.post("/passkey-challenges", { body: given });
  if (user === null) throw new NoPasskey(t.signIn.needsCode);
  const credential = await ask(() =>
    navigator.credentials.create({
      publicKey: {
        challenge: toBytes(challenge),
        rp: { id: rp_id, name: "Plaza" },
        user: { id: new TextEncoder().encode(user.id), name: user.nickname || user.id, displayName: user.nickname },
        pubKeyCredParams: [ES256, RS256].map((alg) => ({ type: "public-key" as const, alg })),
        authenticatorSelection: { residentKey: "required", userVerification: "required" },
        attestation: "none",
      },
    }),
  );
  const { attestationObject, clientDataJSON } = credential.response as AuthenticatorAttestationResponse;
  await plaza.post("/passkeys", {
    body: { ...given, name, client_data: toText(clientDataJSON), attestation: toText(attestationObject) },
  });
}

async function ask(start: () => Promise<Credential | null>): Promise<PublicKeyCredential> {
  try {
    const credential = await start();
    if (credential !== null) return credential as PublicKeyCredential;
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
  }
  throw new NoPasskey(t.signIn.unused);
}

function toText(data: ArrayBuffer): string {
  const binary = String.fromCharCode(...new Uint8Array(data));
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function toBytes(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** Does what needs a sign-in of the last minutes; where it is older, the device signs in again first. */
export async function withFreshSignIn<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof ProblemError && error.slug === "sign-in-too-old")) throw error;
    await signInWithPasskey();
    return act();
  }
}
