import { useEffect, useState } from 'preact/hooks'

/**
 * Whether the tab is seen. While it is not, nothing is asked and nothing followed: a browser has six connections to a service,
 * for all of its tabs.
 */
export function useVisible(): boolean {
  const [isVisible, setVisible] = useState(!document.hidden)
  useEffect(() => {
    const look = (): void => setVisible(!document.hidden)
    document.addEventListener('visibilitychange', look)
    return () => document.removeEventListener('visibilitychange', look)
  }, [])
  return isVisible
}
