/** How much of a limit is used, as a bar: a share from 0, which may be above 1. */
export function UseMeter({ share, label }: { readonly share: number; readonly label: string }) {
  return (
    <meter min={0} max={1} low={0.8} high={0.999} optimum={0} value={Math.min(1, share)} aria-label={label} />
  )
}
