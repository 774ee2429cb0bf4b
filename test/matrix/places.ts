/** Where a plugin can fail. `text` is the part of its class, `ask` what a client does to get there; places without `ask` fail by themselves at each start. */
export interface Place {
  name: string
  /** What the plugin consists of there; `FAULT` is the call of the fault, which may return a promise. */
  text: Partial<Record<'module' | 'field' | 'built' | 'onBoot' | 'onReady' | 'onStop', string>>
  ask?: { path: string; how: 'get' | 'socket' }
  /** Nobody can wait for a promise there. */
  isSync?: boolean
}

/** The same, behind a timer that nobody waits for. */
const LATE = 'setTimeout(() => FAULT, 20)'

/** Fails once for each time that it is asked: the file is there until then. */
const ONCE = (what: string): string => `if (take()) ${what}`

const route = (name: string, what: string, options = ''): string =>
  `http.addEndpoint('/bad/${name}', 'GET', async () => { ${what}; await pause(60_000); return {} }${options})`

export const PLACES: readonly Place[] = [
  { name: 'module', text: { module: 'FAULT' }, isSync: true },
  { name: 'timer of the module', text: { module: LATE } },
  { name: 'field', text: { field: 'planted = FAULT' }, isSync: true },
  { name: 'constructor', text: { built: 'FAULT' }, isSync: true },
  { name: 'onBoot', text: { onBoot: 'await FAULT' } },
  { name: 'timer of onBoot', text: { onBoot: LATE } },
  { name: 'onReady', text: { onReady: 'await FAULT' } },
  {
    name: 'guard',
    text: { onBoot: route('guard', '', ', { guards: [async () => { await FAULT }] }') },
    ask: { path: '/bad/guard', how: 'get' },
  },
  { name: 'handler', text: { onBoot: route('handler', 'await FAULT') }, ask: { path: '/bad/handler', how: 'get' } },
  { name: 'timer of a handler', text: { onBoot: route('late', LATE) }, ask: { path: '/bad/late', how: 'get' } },
  {
    name: 'stream',
    text: { onBoot: "http.addStream('/bad/stream', async () => { await FAULT; await pause(60_000) })" },
    ask: { path: '/bad/stream', how: 'get' },
  },
  {
    name: 'timer of a stream',
    text: { onBoot: `http.addStream('/bad/stream', async () => { ${LATE}; await pause(60_000) })` },
    ask: { path: '/bad/stream', how: 'get' },
  },
  {
    name: 'socket',
    text: { onBoot: "http.addWebSocket('/bad/socket', { open: async () => { await FAULT } })" },
    ask: { path: '/bad/socket', how: 'socket' },
  },
  {
    name: 'subscriber',
    text: {
      onBoot: `event_bus.subscribe('bad.asked', async () => { ${ONCE('await FAULT')} }); http.addEndpoint('/bad/event', 'GET', async () => ({ id: await event_bus.publish('bad.asked', {}) }))`,
    },
    ask: { path: '/bad/event', how: 'get' },
  },
  {
    name: 'timer of a subscriber',
    text: {
      onBoot: `event_bus.subscribe('bad.asked', async () => { ${ONCE(`{ ${LATE} }`)} }); http.addEndpoint('/bad/event', 'GET', async () => ({ id: await event_bus.publish('bad.asked', {}) }))`,
    },
    ask: { path: '/bad/event', how: 'get' },
  },
  {
    name: 'transaction',
    text: { onBoot: route('transaction', 'await db.transaction(async () => { await FAULT })') },
    ask: { path: '/bad/transaction', how: 'get' },
  },
  {
    name: 'job',
    text: { onBoot: `scheduler.every('planted', 200, async () => { ${ONCE('await FAULT')} })` },
    ask: { path: '/good', how: 'get' },
  },
  {
    name: 'timer of a job',
    text: { onBoot: `scheduler.every('planted', 200, async () => { ${ONCE(`{ ${LATE} }`)} })` },
    ask: { path: '/good', how: 'get' },
  },
  { name: 'onStop', text: { onStop: 'await FAULT' } },
]
