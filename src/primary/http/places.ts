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

/** A place that a client holds. */
export interface Place {
  readonly counter: PlaceCounter
  readonly network: string
  readonly route: string
}

/** Counts the places of some kinds, so that one visitor who holds many does not keep out all others. */
class PlaceCounter {
  readonly name: 'Uploads' | 'Streams'
  readonly bounds: Bound
  max = Number.POSITIVE_INFINITY
  maxPerRoute = Number.POSITIVE_INFINITY
  maxPerAddress = Number.POSITIVE_INFINITY
  open = 0
  /** By network, and by route: `GET /events`. */
  readonly #openBy = new Map<string, number>()

  constructor(name: PlaceCounter['name'], bounds: Bound) {
    this.name = name
    this.bounds = bounds
  }

  /** @returns null where there is no place */
  enter(address: string, route: string): Place | null {
    const network = networkOf(address)
    const ofNetwork = this.#openBy.get(network) ?? 0
    const ofRoute = this.#openBy.get(route) ?? 0
    const { bounds } = this
    const full =
      this.open >= this.max
        ? `${this.max} are open (${bounds.process})`
        : ofRoute >= this.maxPerRoute
          ? `${route} has ${ofRoute} (${bounds.route})`
          : ofNetwork >= this.maxPerAddress
            ? `one address has ${ofNetwork} (${bounds.address})`
            : null
    if (full !== null) {
      places.onRefused(`${this.name} are refused: ${full}`, address)
      return null
    }
    this.open++
    this.#openBy.set(network, ofNetwork + 1).set(route, ofRoute + 1)
    return { counter: this, network, route }
  }

  leave({ network, route }: Place): void {
    this.open--
    for (const name of [network, route]) {
      const left = this.#openBy.get(name)! - 1
      if (left === 0) this.#openBy.delete(name)
      else this.#openBy.set(name, left)
    }
  }
}

/** The places of the one listener that a process has. */
class Places {
  readonly uploads = new PlaceCounter('Uploads', BOUNDS.uploads)
  readonly streams = new PlaceCounter('Streams', BOUNDS.streams)
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

  /** @param route its method and path. @returns what `leave` wants; null where there is no place */
  enter(kind: CountedKind, address: string, route: string): Place | null {
    return this[PLACES[kind].bounds].enter(address, route)
  }

  leave(place: Place): void {
    place.counter.leave(place)
  }
}

export const places = new Places()
