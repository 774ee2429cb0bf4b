/**
 * The application, for a page that tries its routes. With `SYSTEM_PORT` it has an address of its own, which this page's browser may not
 * reach: its requests go to the address of the page, with the key by which the listener knows that they are meant for the application.
 */
let own = null

/** @param {{ listener?: import('#heddle').SystemDump['listener'] }} status of the process, as `/system/status` has it */
export function learnApplication({ listener } = {}) {
  own = listener?.application ?? null
}

/** Where others reach it. */
export const applicationOrigin = () => own?.url ?? location.origin

const isOfRuntime = (path) => path.startsWith('/system/')

/** `fetch` from the application, or from the runtime, whose routes are under `/system`. */
export function sendRequest(path, init) {
  if (own === null || isOfRuntime(path)) return fetch(path, init)
  return fetch(path, { ...init, headers: { ...init.headers, 'x-heddle-page': own.key } })
}

/** @returns {WebSocket} */
export function openSocket(path, protocols) {
  // Nothing else is sent with a handshake.
  // biome-ignore lint/suspicious/noDocumentCookie: a page without TLS has no other way
  if (own !== null) document.cookie = `heddle_page=${own.key}; path=/; samesite=strict; max-age=30`
  return new WebSocket(new URL(path, location.origin).href.replace(/^http/, 'ws'), protocols)
}
