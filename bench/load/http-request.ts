/** Seven headers of a browser, besides `host`. */
const BROWSER_HEADERS = [
  'user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'accept: text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8',
  'accept-language: en-GB,en;q=0.7,de;q=0.3',
  'accept-encoding: gzip, deflate, br, zstd',
  'cookie: session=0f8fad5bd9cb469fa16570867728950e; theme=dark',
  'referer: http://127.0.0.1/people?page=2',
  'cache-control: no-cache',
]

/** The bytes of a GET with browser-like headers. */
export function getRequest(path: string): string {
  return `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${BROWSER_HEADERS.join('\r\n')}\r\n\r\n`
}

/** The bytes of a POST with a JSON body and browser-like headers. */
export function postRequest(path: string, body: unknown): string {
  const text = JSON.stringify(body)
  const headers = [...BROWSER_HEADERS, 'content-type: application/json', `content-length: ${Buffer.byteLength(text)}`]
  return `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${headers.join('\r\n')}\r\n\r\n${text}`
}
