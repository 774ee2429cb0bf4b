import { plugin } from '#heddle'
import { addTargetRoutes } from '../routes.ts'

export default plugin(({ auth, http }) => addTargetRoutes({ auth, http }, '/w'))
