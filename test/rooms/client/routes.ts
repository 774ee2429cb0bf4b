import type { JsonSchema, RouteInfo } from '#heddle'

export function routeInfo(method: RouteInfo['method'], path: string, more: Partial<RouteInfo> = {}): RouteInfo {
  return {
    plugin: 'odd.Thing',
    method,
    path,
    is_stream: false,
    is_socket: false,
    host: 'lanes',
    timeout_ms: 0,
    tags: [],
    summary: null,
    description: null,
    has_auth: false,
    idempotency: null,
    security: null,
    has_raw_body: false,
    streamed_body: null,
    schemas: {},
    status: 200,
    throws: {},
    ...more,
  }
}

const text = { type: 'string' }

/** Schemas that are hard to write as types. */
export const ODD_SCHEMAS: Record<string, JsonSchema> = {
  tree: {
    type: 'object',
    properties: { kids: { type: 'array', items: { $ref: '#' } }, 'a b\'"\\': text },
    required: ['kids'],
  },
  maps: { type: 'object', propertyNames: text, additionalProperties: { $ref: '#' } },
  known: { type: 'object', properties: { n: { type: 'integer' } }, additionalProperties: { type: ['number', 'null'] } },
  loose: { type: 'object', properties: { n: { type: 'integer' } }, additionalProperties: {} },
  strict: { type: 'object', additionalProperties: false },
  picked: { type: 'object', propertyNames: { enum: ['a', 'b-c'] }, additionalProperties: text, required: ['a'] },
  tuple: { type: 'array', prefixItems: [text, { type: ['number', 'null'] }], minItems: 1, items: { type: 'boolean' } },
  chosen: {
    oneOf: [{ const: null }, { enum: ['x', 2, true] }, { type: 'array', items: { anyOf: [text, { type: 'null' }] } }],
  },
  both: {
    allOf: [
      { type: 'object', properties: { a: text } },
      {
        anyOf: [
          { type: 'object', properties: { b: text } },
          { type: 'object', properties: { c: text } },
        ],
      },
    ],
  },
  itself: { anyOf: [{ $ref: '#' }, text] },
  nothing: { $ref: '#' },
  lost: { type: 'object', properties: { x: { $ref: '#/$defs/None' }, y: { $ref: 'https://example.com/' } } },
  shared: {
    $defs: { Error: { type: 'object', properties: { next: { $ref: '#/$defs/Error' } } }, __schema0: text },
    type: 'object',
    properties: { e: { $ref: '#/$defs/Error' }, s: { $ref: '#/$defs/__schema0' } },
  },
  sharedAgain: { $defs: { Error: { type: 'string' } }, type: 'object', properties: { e: { $ref: '#/$defs/Error' } } },
  comments: {
    type: 'object',
    description: 'It ends */ here\nand // there\u2028',
    properties: { constructor: { type: 'string', description: '*/ alert(1) /*' }, __proto__: text },
  },
  no: { type: 'object', properties: { never: false, always: true } },
}

/** Routes of every kind, with texts that try to leave their place. */
export const ODD_ROUTES: RouteInfo[] = [
  ...Object.entries(ODD_SCHEMAS).map(([name, schema]) =>
    routeInfo('POST', `/odd/${name}`, {
      schemas: { body: schema, response: schema },
      throws: { 409: { description: 'a\n*/ b', codes: ["it's", '\\'], details: schema } },
    }),
  ),
  routeInfo('GET', "/it's/:a-b/:id/*", {
    summary: 'Ends */\u2028 here',
    schemas: { params: { type: 'object', properties: { id: { type: 'integer' } } } },
  }),
  routeInfo('GET', '/', { schemas: { query: ODD_SCHEMAS.known! } }),
  routeInfo('GET', '/grüße/:wer'),
  routeInfo('HEAD', '/grüße/:wer'),
  routeInfo('PATCH', '/a.b', { status: 204 }),
  routeInfo('PUT', '/a-b', { streamed_body: 'multipart' }),
  routeInfo('PATCH', '/a-b', { has_raw_body: true }),
  routeInfo('DELETE', '/a/b', { idempotency: 'required', has_auth: true }),
  routeInfo('GET', '/stream', {
    is_stream: true,
    schemas: { query: { type: 'object', properties: { n: text }, required: ['n'] } },
  }),
  routeInfo('GET', '/socket', { is_socket: true }),
]

/** Events whose names try to leave their place. */
export const ODD_EVENTS = new Map(
  Object.entries(ODD_SCHEMAS).map(([name, schema]) => [`odd.${name}-*/'`, { domain: 'odd', schema }] as const),
)
