import { type LaneInfo, plugin } from '#heddle'

const options = {
  tags: ['system'],
  summary: 'State, load and restarts of each lane',
  description: 'With the last deaths of each, and what it was doing.',
}

/** Each lane's state, load and restarts, and its work when it last died. */
export default plugin(
  ({ http, registry }) => {
    http.get('/system/lanes', options, async (): Promise<LaneInfo[]> => registry.getLanes())
  },
  { thread: 'primary' },
)
