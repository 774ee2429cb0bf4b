import { plugin } from '#heddle'
import { addTargetRoutes } from '../routes.ts'

export default plugin(({ auth, event_bus, http, state }) => addTargetRoutes({ auth, event_bus, http, state }, '/p'), {
  thread: 'primary',
})
