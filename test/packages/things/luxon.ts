import { DateTime } from 'luxon'

export default () => () => DateTime.fromISO('2026-03-29T01:30', { zone: 'Europe/Berlin' }).plus({ hours: 1 }).toISO()
