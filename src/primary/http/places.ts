// The places that clients can hold: one row for each kind, with what bounds it. `test/rooms/http/places.test.ts` fills each row.
import type { Settings } from '../../core/config/schema.ts'
import { networkOf } from '../../core/http/network.ts'

/** What bounds places by process, by route and by address (an IPv4 address, or the /64 network of an IPv6 address). */
interface Bound {
  readonly process: string
  readonly route: string
  readonly address: string
}

export const BOUNDS = {
  /** Counted by `HeldPlaces`, where the lanes' places are. */
  requests: {
    process: 'LANE_MAX_INFLIGHT',
    route: 'HTTP_MAX_REQUESTS_PER_ROUTE',
    address: 'HTTP_MAX_REQUESTS_PER_ADDRESS',
  },
  uploads: {
    process: 'HTTP_MAX_UPLOADS',
    route: 'HTTP_MAX_UPLOADS_PER_ROUTE',
    address: 'HTTP_MAX_UPLOADS_PER_ADDRESS',
  },
  streams: {
    process: 'HTTP_MAX_STREAMS',
    route: 'HTTP_MAX_STREAMS_PER_ROUTE',
    address: 'HTTP_MAX_STREAMS_PER_ADDRESS',
  },
  /** `ConnectionLimit` counts them. A connection that asks for nothing has no route. */
  connections: { process: 'ulimit -n', route: 'none', address: 'half of the connections of the process' },
} as const satisfies Record<string, Bound>

/** One kind of place. */
interface PlaceKindRow {
  /** Kinds with the same bounds share them. */
  readonly bounds: keyof typeof BOUNDS
  /** When a client takes the place, and when it gives it back at the latest. */
  readonly from: string
  readonly until: string
  /** What a client gets that finds none: an answer, or the end of its connection. */
  readonly refusal: '503' | 'closed'
}

export const PLACES = {
  connection: {
    bounds: 'connections',
    from: 'it opens',
    until: 'it closes: by the client, by a slow head or body, or idle for HTTP_KEEP_ALIVE_MS',
    refusal: 'closed',
  },
  request: {
    bounds: 'requests',
    from: 'its head has come, and its body where it is not handed on while it comes',
    until: 'its answer begins, or HTTP_HANDLER_TIMEOUT_MS is over',
    refusal: '503',
  },
  'abandoned handler': {
    bounds: 'requests',
    from: 'the client leaves, or the time is up',
    until: 'the handler settles',
    refusal: '503',
  },
  handshake: {
    bounds: 'requests',
    from: 'its head has come',
    until: 'the guards and the handler of the WebSocket have answered',
    refusal: '503',
  },
  upload: {
    bounds: 'uploads',
    from: 'its head has come, of a body that is handed on while it comes',
    until:
      'the body is complete, is too slow, or is not wanted any more; its handler then holds the place of a request',
    refusal: '503',
  },
  'slow body': {
    bounds: 'uploads',
    from: 'a body that is handed over whole has been coming for a second',
    until: 'it is complete, or too slow',
    refusal: '503',
  },
  'event stream': { bounds: 'streams', from: 'its head has come', until: 'it ends', refusal: '503' },
  'long answer': {
    bounds: 'streams',
    from: 'a streamed answer or a file of more than 64 KiB begins',
    until: 'it is sent, or the client has read nothing for 30 s',
    refusal: '503',
  },
  socket: { bounds: 'streams', from: 'its handshake has come', until: 'it closes', refusal: '503' },
} as const satisfies Record<string, PlaceKindRow>

export type PlaceKind = keyof typeof PLACES
type CountedKind = {
  [Kind in PlaceKind]: (typeof PLACES)[Kind]['bounds'] extends 'uploads' | 'streams' ? Kind : never
}[PlaceKind]

/** Whom a place, or memory, is counted for. */
export interface Owner {
  readonly network: string
  /** `GET /events` */
  readonly route: string
}

/** What one route or one address may hold of what all share, unless a setting says otherwise. */
export const SHARE = 0.75
/** Of memory one address holds less, so that it does not fill the part of a route. */
export const MEMORY_SHARE_OF_ADDRESS = 0.5

/** Counts what clients share, places or bytes, so that one visitor who holds many does not keep out all others. */
class Shares {
  max: number
  maxPerRoute: number
  maxPerAddress: number
  held = 0
  /** By network, and by route. */
  readonly #heldBy = new Map<string, number>()

  constructor(max = Number.POSITIVE_INFINITY, maxPerRoute = max, maxPerAddress = max) {
    this.max = max
    this.maxPerRoute = maxPerRoute
    this.maxPerAddress = maxPerAddress
  }

  /** Why there is no room for so much more, as the bound that is reached and what has it; null when there is. */
  fullFor({ network, route }: Owner, amount: number): { bound: keyof Bound; what: string } | null {
    if (this.held + amount > this.max) return { bound: 'process', what: `all clients together have ${this.held}` }
    const ofRoute = this.#heldBy.get(route) ?? 0
    if (ofRoute + amount > this.maxPerRoute) return { bound: 'route', what: `${route} has ${ofRoute}` }
    const ofNetwork = this.#heldBy.get(network) ?? 0
    if (ofNetwork + amount > this.maxPerAddress) return { bound: 'address', what: `one address has ${ofNetwork}` }
    return null
  }

  /** Counts, also beyond the bounds. @param amount negative for what is given back */
  add({ network, route }: Owner, amount: number): void {
    this.held += amount
    for (const name of [network, route]) {
      const held = (this.#heldBy.get(name) ?? 0) + amount
      if (held === 0) this.#heldBy.delete(name)
      else this.#heldBy.set(name, held)
    }
  }
}

/** Bytes of memory that clients share. */
export class SharedBytes extends Shares {
  readonly #name: string

  /** @param name as the log says it: `Messages` */
  constructor(name: string, max: number) {
    super(max, SHARE * max, MEMORY_SHARE_OF_ADDRESS * max)
    this.#name = name
  }

  /** Counts bytes that there is room for. False when there is none. */
  tryAdd(owner: Owner, bytes: number): boolean {
    const full = this.fullFor(owner, bytes)
    if (full !== null)
      places.onRefused(`${this.#name} are refused: their memory is full for a ${full.bound}`, owner.network)
    else this.add(owner, bytes)
    return full === null
  }
}

/** A place that a client holds. */
export interface Place extends Owner {
  readonly counter: PlaceCounter
}

/** Counts the places of some kinds. */
class PlaceCounter extends Shares {
  readonly name: 'Uploads' | 'Streams'
  readonly bounds: Bound

  constructor(name: PlaceCounter['name'], bounds: Bound) {
    super()
    this.name = name
    this.bounds = bounds
  }

  /** @returns null where there is no place */
  enter(address: string, route: string): Place | null {
    const place = { counter: this, network: networkOf(address), route }
    const full = this.fullFor(place, 1)
    if (full === null) this.add(place, 1)
    else places.refuse(this.name, full.what, this.bounds[full.bound], address)
    return full === null ? place : null
  }
}

/** The places of the one listener that a process has. */
class Places {
  readonly uploads = new PlaceCounter('Uploads', BOUNDS.uploads)
  readonly streams = new PlaceCounter('Streams', BOUNDS.streams)
  /** What was refused since the start, by what bounds it. */
  readonly refused = new Map<string, number>()
  /** Told of each client that finds none. */
  onRefused: (what: string, address: string) => void = () => {}

  configure(settings: Settings): void {
    const { uploads, streams } = this
    uploads.max = settings.httpMaxUploads
    uploads.maxPerRoute = settings.httpMaxUploadsPerRoute
    uploads.maxPerAddress = settings.httpMaxUploadsPerAddress
    streams.max = settings.httpMaxStreams
    streams.maxPerRoute = settings.httpMaxStreamsPerRoute
    streams.maxPerAddress = settings.httpMaxStreamsPerAddress
  }

  /** Counts a client that finds no place, and tells of it. @param bound a setting, or the memory that is full */
  refuse(what: string, why: string, bound: string, address: string): void {
    this.refused.set(bound, (this.refused.get(bound) ?? 0) + 1)
    const setting = bound === what ? '' : ` (${bound})`
    this.onRefused(`${what} are refused: ${why}${setting}`, address)
  }

  /** @param route its method and path. @returns what `leave` wants; null where there is no place */
  enter(kind: CountedKind, address: string, route: string): Place | null {
    return this[PLACES[kind].bounds].enter(address, route)
  }

  leave(place: Place): void {
    place.counter.add(place, -1)
  }
}

export const places = new Places()
