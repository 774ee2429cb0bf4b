import { DAY_MS, NO_BLANKS, type VariableRow } from './row.ts'

/** What a bearer token can be made of (RFC 6750), and long enough not to be guessed. */
const TOKEN = {
  pattern: /^[A-Za-z0-9\-._~+/=]{16,1024}$/,
  wanted: 'at least 16 of the characters A-Z a-z 0-9 - . _ ~ + / =',
} as const

/** The listener, and who may reach what. */
export const HTTP_VARIABLES = {
  HTTP_HOST: { type: 'text', ...NO_BLANKS, default: '127.0.0.1', effect: 'Address to listen on.' },
  HTTP_PORT: { type: 'integer', min: 0, max: 65_535, default: 8000, effect: 'Port to listen on; 0: any free port.' },
  HTTP_LISTENER: {
    type: 'choice',
    choices: ['auto', 'uws', 'node'],
    default: 'auto',
    effect:
      'What serves HTTP: uWebSockets.js (`uws`), or node:http (`node`); `auto`: uWebSockets.js where it has a binary for the platform, else node:http.',
  },
  HTTP_REUSE_PORT: {
    type: 'boolean',
    default: false,
    effect:
      'Lets several processes with this setting listen on one port (not 0); the kernel spreads connections over them.',
  },
  HTTP_ALLOWED_HOSTS: {
    type: 'hosts',
    default: [],
    unit: 'comma-separated host names',
    effect:
      'Names that a request may have in `Host`, else 421; `*.example.com`: every name below, `*`: any. Unset: loopback names and `HTTP_HOST` on a loopback host, else any.',
  },
  HTTP_CORS_ORIGINS: {
    type: 'origins',
    default: [],
    unit: 'comma-separated origins',
    effect: 'Origins whose pages may call the service; empty: none, `*`: all.',
  },
  HTTP_CORS_CREDENTIALS: {
    type: 'boolean',
    default: false,
    effect: 'Browsers may send cookies with the requests of those pages, and give them the answers; not with `*`.',
  },
  HTTP_COMPRESSION: {
    type: 'boolean',
    default: false,
    effect:
      'Compresses answers of lanes of 1 KiB or more (JSON and text) with brotli or gzip for clients that accept it: where no proxy does.',
  },
  HTTP_TRUSTED_PROXIES: {
    type: 'networks',
    default: [],
    unit: 'comma-separated addresses or networks',
    effect:
      'Proxies whose `X-Forwarded-For` decides `context.ip`: its rightmost address that is none of them. Empty: the address of the connection.',
  },
  SYSTEM_TOKEN: {
    type: 'text',
    ...TOKEN,
    default: undefined,
    secret: true,
    effect:
      'Token that `/system/*` wants, as bearer or from the login page; unset, with no `SYSTEM_PORT`: it is open, but closed in production with `HTTP_TRUSTED_PROXIES` or `HTTP_ALLOWED_HOSTS`.',
  },
  SYSTEM_READ_TOKEN: {
    type: 'text',
    ...TOKEN,
    default: undefined,
    secret: true,
    effect: 'Token with which `/system/*` may be read and nothing be changed.',
  },
  SYSTEM_PORT: {
    type: 'integer',
    min: 0,
    max: 65_535,
    default: undefined,
    effect:
      'Port that alone serves `/system/*`, which is then 404 on `HTTP_PORT`, but for its health; 0: any free port. Of several `PROCESSES` each has its own: this one, the next, …',
  },
  SYSTEM_HOST: { type: 'text', ...NO_BLANKS, default: '127.0.0.1', effect: 'Address of `SYSTEM_PORT`.' },
  HTTP_BODY_LIMIT: {
    type: 'integer',
    min: 1,
    max: 1_073_741_824,
    default: 1_048_576,
    unit: 'bytes',
    effect: 'Largest request body; a larger one is answered with 413.',
  },
  HTTP_MAX_STREAMS: {
    type: 'integer',
    min: 1,
    max: 60_000,
    default: 10_000,
    unit: 'streams',
    effect:
      'Most event streams, WebSockets and long answers that are open at a time, which hold no place in `LANE_MAX_INFLIGHT`; a further one is answered with 503.',
  },
  HTTP_MAX_STREAMS_PER_ROUTE: {
    type: 'integer',
    min: 1,
    max: 60_000,
    default: 5000,
    unit: 'streams',
    effect: 'Most of them on one route, so that the others have room.',
  },
  HTTP_MAX_STREAMS_PER_ADDRESS: {
    type: 'integer',
    min: 1,
    max: 60_000,
    default: 100,
    unit: 'streams',
    effect:
      'Most of them for one client: an IPv4 address, or the /64 network of an IPv6 address; behind `HTTP_TRUSTED_PROXIES` that of the client.',
  },
  HTTP_HANDLER_TIMEOUT_MS: {
    type: 'integer',
    min: 1,
    max: DAY_MS,
    default: 30_000,
    unit: 'ms',
    effect: 'Timeout of a handler; a request that takes longer is answered with 504.',
  },
} as const satisfies Record<string, VariableRow>
