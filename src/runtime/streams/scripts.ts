import { type RedisScript, readScript } from '../../stores/redis/client.ts'

const script = (name: string): RedisScript => readScript(new URL(`./commands/${name}.lua`, import.meta.url))

/** The scripts of the stream transport. The server runs each in one step. */
export const SCRIPTS = {
  lastId: script('last-id-1'),
  publishBatch: script('publish-batch-1'),
  publishKeyed: script('publish-keyed-2'),
  acknowledged: script('acknowledged-1'),
  delay: script('delay-1'),
  releaseDue: script('release-due-1'),
  ensureGroup: script('ensure-group-1'),
  removeConsumer: script('remove-consumer-2'),
  moveEntries: script('move-entries-1'),
  takeReplica: script('take-replica-1'),
  renewReplica: script('renew-replica-1'),
  releaseReplica: script('release-replica-1'),
  trim: script('trim-2'),
  markGroupsSeen: script('mark-groups-seen-1'),
  retireGroups: script('retire-groups-2'),
  destroyBroadcast: script('destroy-broadcast-2'),
  addDeadLetter: script('add-dead-letter-5'),
  listDeadLetters: script('list-dead-letters-2'),
  editDeadLetter: script('edit-dead-letter-2'),
  replayDeadLetter: script('replay-dead-letter-5'),
  admit: script('admit-3'),
  freePlace: script('free-place-5'),
} as const

/** For a `RedisClient`: a connection that has loaded them sends only their hashes. */
export const STREAM_SCRIPTS: readonly RedisScript[] = Object.values(SCRIPTS)
