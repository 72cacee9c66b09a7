package report

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-analyze/charts"
)

const (
	chartHeight = 54.0 // millimetres
	// chartScale is how many pixels a millimetre has: 229 dots per inch.
	chartScale = 9
	// chartText is the size of a chart's texts, in pixels at the charts library's 92
	// dots per inch.
	chartText = 7.5 * millimetres * chartScale * 72 / 92
)

// chartsSideBySide is how many charts at the beginning of the blocks stand in one
// row: two, or one, as bars with long labels need the whole width.
func (l *layout) chartsSideBySide(blocks []Block) int {
	const longLabel = 36
	for _, b := range blocks[:min(len(blocks), 2)] {
		c, ok := b.(Chart)
		if !ok || c.Kind == Bar && l.anyWider(c.Labels, longLabel) {
			return 1
		}
	}
	return min(len(blocks), 2)
}

// charts are one or two charts in a row, each under its title.
func (l *layout) charts(blocks []Block) error {
	const gap = 6.0
	width := (bodyWidth - gap*float64(len(blocks)-1)) / float64(len(blocks))
	var parts []component
	for i, b := range blocks {
		c := b.(Chart)
		x := float64(i) * (width + gap)
		parts = append(parts, l.words(l.fit(c.Title, width, captionStyle), x, 4, captionStyle))
		if c.empty() {
			parts = append(parts, l.words("No data.", x, 10, bodyStyle))
			continue
		}
		file, err := l.draw(&c, width, chartHeight)
		if err != nil {
			return fmt.Errorf("draw the chart %q: %w", c.Title, err)
		}
		parts = append(parts, &picture{png: file, x: x, y: 6, width: width, height: chartHeight})
	}
	l.place(chartHeight+7, parts...)
	l.gap(2)
	return nil
}

// empty reports whether a chart has no values, or a donut none above 0.
func (c *Chart) empty() bool {
	for _, s := range c.Series {
		for _, v := range s.Values {
			if !math.IsNaN(v) && (c.Kind != Donut || v > 0) {
				return false
			}
		}
	}
	return true
}

// draw makes a PNG of a chart of a size in millimetres.
func (l *layout) draw(c *Chart, width, height float64) ([]byte, error) {
	look := l.chartLook(c, width)
	p := charts.NewPainter(charts.PainterOptions{
		OutputFormat: charts.ChartOutputPNG, Width: int(width * chartScale), Height: int(height * chartScale),
		Font: look.text.Font, Theme: look.theme,
	})

	var err error
	switch c.Kind {
	case Line:
		err = p.LineChart(look.line(c))
	case Donut:
		err = p.DoughnutChart(look.donut(c))
	default:
		err = p.BarChart(look.bar(c))
	}
	if err != nil {
		return nil, err
	}
	file, err := p.Bytes()
	if err != nil {
		return nil, err
	}
	return opaque(file)
}

// opaque removes the alpha channel of a PNG, which would double its size in a PDF.
func opaque(file []byte) ([]byte, error) {
	drawn, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	flat := image.NewRGBA(drawn.Bounds())
	draw.Draw(flat, flat.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(flat, flat.Bounds(), drawn, drawn.Bounds().Min, draw.Over)

	var out bytes.Buffer
	err = png.Encode(&out, flat)
	return out.Bytes(), err
}

// chartLook is how a chart looks.
type chartLook struct {
	theme  charts.ColorPalette
	text   charts.FontStyle
	labels []string
	// shown are the labels that fit beside each other; the others are empty.
	shown []string
	names []string
	// lying says that bars lie, with their labels beside them.
	lying bool
	// padding is left free around the chart.
	padding charts.Box
	// axis is what the axis of values has.
	axis   charts.YAxisOption
	format charts.ValueFormatter
}

// chartLook chooses one font for all texts of a chart, as the library has no other
// for what the first lacks.
func (l *layout) chartLook(c *Chart, width float64) *chartLook {
	look := &chartLook{theme: chartTheme()}
	slot := 40.0 // of a label
	if bars := c.Kind == Bar || c.Kind == StackedBar; bars && len(c.Labels) > 0 {
		slot = max(min(slot, (width-14)/float64(len(c.Labels))-4), 10)
		if look.lying = c.Kind == Bar && l.anyWider(c.Labels, slot); look.lying {
			slot = width / 2.2
		}
	}
	face := l.regular
	clean := func(text string, width float64) string {
		text = l.fit(text, width, labelStyle)
		for _, r := range text {
			if l.face(r, false) == l.extra && l.extra != nil {
				face = l.extra
			}
		}
		return visual(text)
	}
	for _, label := range c.Labels {
		look.labels = append(look.labels, clean(label, slot))
	}
	for i := range c.Series {
		look.names = append(look.names, clean(c.Series[i].Name, 40))
	}
	if look.shown = look.labels; !look.lying {
		look.shown = l.fitting(look.labels, width-14, c.Kind == Line)
	}

	look.text = charts.FontStyle{FontSize: chartText, FontColor: gray.chart(), Font: face.outlines}
	look.padding = charts.NewBox(chartScale, 3*chartScale, 2*chartScale, chartScale)
	look.format = func(v float64) string { return chartNumber(v) + c.Unit }
	look.axis = charts.YAxisOption{LabelFontStyle: look.text, ValueFormatter: look.format}
	lowest, highest, labels := c.scale()
	look.axis.Min, look.axis.Max, look.axis.LabelCount = &lowest, &highest, labels
	if look.lying {
		look.lie(labels)
	}
	return look
}

// lie makes room at the end of bars that lie for their numbers, and beneath them for
// fewer labels. The library begins at the bottom, a reader at the top.
func (k *chartLook) lie(labels int) {
	k.padding.Right = 9 * chartScale
	if labels%2 == 1 {
		k.axis.LabelCount = labels/2 + 1
	}
	slices.Reverse(k.shown)
}

// anyWider reports whether one of the labels of a chart is wider than a width.
func (l *layout) anyWider(labels []string, width float64) bool {
	return slices.ContainsFunc(labels, func(label string) bool { return l.width(l.clean(label), labelStyle) > width })
}

// fitting keeps every n-th label, so that those stand beside each other in a width:
// loosely below lines, where the library moves the first and the last one inwards.
func (l *layout) fitting(labels []string, width float64, loose bool) []string {
	widest := 0.0
	for _, label := range labels {
		if wide := l.width(label, labelStyle); loose {
			widest = max(widest, 1.4*wide+1.2)
		} else {
			widest = max(widest, wide+2)
		}
	}
	every := max(int(math.Ceil(widest*float64(len(labels))/width)), 1)
	shown := make([]string, len(labels))
	for i := 0; i < len(labels); i += every {
		shown[i] = labels[i]
	}
	return shown
}

// scale chooses round numbers for the ends of the axis of values, and how many
// labels it has. It begins at 0, but for lines far above it.
func (c *Chart) scale() (lowest, highest float64, labels int) {
	lowest, highest = c.bounds()
	if c.Kind == Line && lowest > highest/2 {
		lowest = max(lowest-max(highest-lowest, highest/20)/2, 0)
	} else {
		lowest = min(lowest, 0)
	}
	highest = max(highest, lowest+1)

	step := c.step((highest - lowest) / 4)
	lowest, highest = math.Floor(lowest/step)*step, math.Ceil(highest/step)*step
	return lowest, highest, int(math.Round((highest-lowest)/step)) + 1
}

// step is the least round number that is not less than the given one. Between
// counts there are no fractions.
func (c *Chart) step(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, round := range []float64{1, 2, 2.5, 5} {
		step := round * power
		if step >= least && (c.Unit == "%" || step == math.Trunc(step)) {
			return step
		}
	}
	return max(10*power, 1)
}

// bounds are the lowest and the highest value, or the highest stack.
func (c *Chart) bounds() (lowest, highest float64) {
	lowest, highest = math.Inf(1), math.Inf(-1)
	stacks := make([]float64, len(c.Labels))
	for _, s := range c.Series {
		for i, v := range s.Values {
			if math.IsNaN(v) {
				continue
			}
			lowest, highest = min(lowest, v), max(highest, v)
			if i < len(stacks) {
				stacks[i] += v
			}
		}
	}
	if c.Kind == StackedBar {
		for _, stack := range stacks {
			highest = max(highest, stack)
		}
	}
	return lowest, highest
}

func chartTheme() charts.ColorPalette {
	colors := make([]charts.Color, len(seriesColors))
	for i, c := range seriesColors {
		colors[i] = c.chart()
	}
	return charts.MakeTheme(charts.ThemeOption{
		AxisStrokeColor: faint.chart(), AxisSplitLineColor: faint.chart(), BackgroundColor: white.chart(),
		TextColor: gray.chart(), SeriesColors: colors,
	})
}

// chartNumber is a number without needless decimals.
func chartNumber(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return grouped(int(v))
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

func (k *chartLook) legend() charts.LegendOption {
	return charts.LegendOption{
		SeriesNames: k.names, FontStyle: k.text, Show: charts.Ptr(len(k.names) > 1), Symbol: charts.SymbolSquare,
		Padding: charts.NewBox(0, 0, 0, chartScale),
	}
}

// category is the axis of labels. Where they do not all fit, every second, third
// and so on is shown.
func (k *chartLook) category() charts.XAxisOption {
	axis := charts.XAxisOption{Labels: k.shown, LabelFontStyle: k.text}
	if len(k.shown) > 1 {
		axis.LabelCount = len(k.shown)
	}
	return axis
}

// values are the numbers of a series as the library wants them, one for each label.
func (k *chartLook) values(s *Series) []float64 {
	values := make([]float64, len(k.labels))
	for i := range values {
		values[i] = charts.GetNullValue()
		if i < len(s.Values) && !math.IsNaN(s.Values[i]) {
			values[i] = s.Values[i]
		}
	}
	return values
}

func (k *chartLook) line(c *Chart) charts.LineChartOption {
	var list charts.LineSeriesList
	for i := range c.Series {
		list = append(list, charts.LineSeries{Name: k.names[i], Values: k.values(&c.Series[i])})
	}
	opt := charts.NewLineChartOptionWithSeries(list)
	opt.Theme, opt.Padding, opt.XAxis, opt.Legend = k.theme, k.padding, k.category(), k.legend()
	opt.YAxis = []charts.YAxisOption{k.axis}
	opt.LineStrokeWidth = 0.6 * chartScale
	opt.Symbol = charts.Symbol{Shape: charts.SymbolNone}
	if len(k.labels) <= 31 {
		opt.Symbol = charts.Symbol{Shape: charts.SymbolDot, Size: 0.7 * chartScale}
	}
	opt.ValueFormatter = k.format
	return opt
}

func (k *chartLook) bar(c *Chart) charts.BarChartOption {
	var list charts.BarSeriesList
	for i := range c.Series {
		s := charts.BarSeries{Name: k.names[i], Values: k.values(&c.Series[i])}
		if k.lying {
			slices.Reverse(s.Values)
		}
		s.Label = charts.SeriesLabel{
			Show:      charts.Ptr(len(c.Series) == 1 && len(k.labels) <= 16),
			FontStyle: k.text, ValueFormatter: k.format,
		}
		list = append(list, s)
	}
	opt := charts.NewBarChartOptionWithSeries(list)
	opt.Theme, opt.Padding, opt.CategoryAxis, opt.Legend = k.theme, k.padding, k.category(), k.legend()
	opt.ValueAxis = []charts.ValueAxisOption{k.axis}
	opt.Horizontal = k.lying
	opt.StackSeries = charts.Ptr(c.Kind == StackedBar)
	if len(c.Series) == 1 || c.Kind == StackedBar {
		opt.BarSize = min(0.6, 0.07*float64(len(k.labels)+1))
	}
	opt.ValueFormatter = k.format
	return opt
}

func (k *chartLook) donut(c *Chart) charts.DoughnutChartOption {
	var values []float64
	var names []string
	var shades []charts.Color
	colors := c.colors()
	for i, v := range k.values(&c.Series[0]) {
		if v != charts.GetNullValue() && v > 0 {
			values = append(values, v)
			names = append(names, k.labels[i])
			shades = append(shades, colors[i].chart())
		}
	}
	opt := charts.NewDoughnutChartOptionWithData(values)
	for i := range opt.SeriesList {
		opt.SeriesList[i].Name = names[i]
		opt.SeriesList[i].Label = charts.SeriesLabel{
			Show: charts.Ptr(true), FontStyle: k.text,
			LabelFormatter: func(_ int, name string, v float64) (string, *charts.LabelStyle) {
				return name + ": " + k.format(v), nil
			},
		}
	}
	opt.Theme, opt.Padding = k.theme.WithSeriesColors(shades), k.padding
	opt.Legend = charts.LegendOption{Show: charts.Ptr(false)}
	opt.ValueFormatter = k.format
	return opt
}
